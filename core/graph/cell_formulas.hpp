#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "core/graph/address.hpp"

/// The formula of one cell for each rule of the table: "q_1 · k_0"; "_" stands before a subscript.
namespace core::explain::cell_formulas {

/// Words that can be an argument of a template.
template <std::size_t size>
struct Words {
  char text[size];
  constexpr Words(const char (&words)[size]) { std::copy_n(words, size, text); }  // NOLINT: words are Words
};

/// The same words for every cell.
template <Words words>
std::string always(const Model&, const Trace&, const CellAddress&) {
  return words.text;
}

std::string given(const Model&, const Trace&, const CellAddress&);
std::string head_off(const Model&, const Trace&, const CellAddress&);
std::string token_and_column(const Model&, const Trace&, const CellAddress&);
std::string key_and_column(const Model&, const Trace&, const CellAddress&);
std::string normed(const Model&, const Trace&, const CellAddress&);
std::string turned(const Model&, const Trace&, const CellAddress&);
std::string not_turned(const Model&, const Trace&, const CellAddress&);
std::string capped(const Model&, const Trace&, const CellAddress&);
std::string sloped(const Model&, const Trace&, const CellAddress&);
std::string bucket(const Model&, const Trace&, const CellAddress&);
std::string biased(const Model&, const Trace&, const CellAddress&);
std::string query(const Model&, const Trace&, const CellAddress&);
std::string key(const Model&, const Trace&, const CellAddress&);
std::string value(const Model&, const Trace&, const CellAddress&);
std::string unprojected(const Model&, const Trace&, const CellAddress&);
std::string query_by_key(const Model&, const Trace&, const CellAddress&);
std::string key_by_query(const Model&, const Trace&, const CellAddress&);
std::string scale(const Model&, const Trace&, const CellAddress&);
std::string visibility(const Model&, const Trace&, const CellAddress&);
std::string over_line(const Model&, const Trace&, const CellAddress&);
std::string empty_row(const Model&, const Trace&, const CellAddress&);
std::string row_sum(const Model&, const Trace&, const CellAddress&);
std::string survival(const Model&, const Trace&, const CellAddress&);
std::string context(const Model&, const Trace&, const CellAddress&);
std::string merged(const Model&, const Trace&, const CellAddress&);
std::string output_row(const Model&, const Trace&, const CellAddress&);

}  // namespace core::explain::cell_formulas
