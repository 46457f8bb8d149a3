#pragma once

#include <string>

#include "core/explain/address.hpp"

/// The formula of one cell for each rule of the table: "q_1 · k_0"; "_" stands before a subscript.
namespace core::explain::cell_formulas {

std::string given(const Model&, const Trace&, const CellAddress&);
std::string head_off(const Model&, const Trace&, const CellAddress&);
std::string token_and_column(const Model&, const Trace&, const CellAddress&);
std::string query(const Model&, const Trace&, const CellAddress&);
std::string key(const Model&, const Trace&, const CellAddress&);
std::string value(const Model&, const Trace&, const CellAddress&);
std::string unprojected(const Model&, const Trace&, const CellAddress&);
std::string query_by_key(const Model&, const Trace&, const CellAddress&);
std::string key_by_query(const Model&, const Trace&, const CellAddress&);
std::string uniform(const Model&, const Trace&, const CellAddress&);
std::string scale(const Model&, const Trace&, const CellAddress&);
std::string visibility(const Model&, const Trace&, const CellAddress&);
std::string masked_later(const Model&, const Trace&, const CellAddress&);
std::string over_dropped(const Model&, const Trace&, const CellAddress&);
std::string over_line(const Model&, const Trace&, const CellAddress&);
std::string empty_row(const Model&, const Trace&, const CellAddress&);
std::string times_mask(const Model&, const Trace&, const CellAddress&);
std::string row_sum(const Model&, const Trace&, const CellAddress&);
std::string by_row_sum(const Model&, const Trace&, const CellAddress&);
std::string survival(const Model&, const Trace&, const CellAddress&);
std::string times_dropout(const Model&, const Trace&, const CellAddress&);
std::string times_dropout_score(const Model&, const Trace&, const CellAddress&);
std::string dropped_before(const Model&, const Trace&, const CellAddress&);
std::string context(const Model&, const Trace&, const CellAddress&);
std::string merged(const Model&, const Trace&, const CellAddress&);
std::string output_row(const Model&, const Trace&, const CellAddress&);
std::string not_projected(const Model&, const Trace&, const CellAddress&);

}  // namespace core::explain::cell_formulas
