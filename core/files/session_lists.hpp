#pragma once

#include <armadillo>
#include <string>
#include <vector>

#include "core/base/shared_matrix.hpp"

/// Lists of numbers as a session file has them, one row a line.
namespace core::formats {

/// "[first, second]" on one line, or with a line for each item, indented by one step more than the bracket.
template <class Items, class ItemText>
std::string list_text(const Items& items, const std::string& indent, bool by_lines, ItemText item_text) {
  const std::string line = by_lines ? "\n" + indent + "  " : "";
  std::string text = "[";
  bool first = true;
  for (const auto& item : items) {
    if (!first) text += by_lines ? "," : ", ";
    first = false;
    text += line + item_text(item, indent + "  ");
  }
  return text + (by_lines ? "\n" + indent : "") + "]";
}

/// A number, in quotes when JSON has none like it.
std::string json_number(double value);

/// Row i of a matrix.
std::string row_text(const arma::mat& m, std::size_t i);

/// A matrix as a list of rows.
std::string matrix_text(const arma::mat& m, const std::string& indent);

/// [sequence · n_heads + head] as a list of a matrix a head, for each sequence when there are several.
std::string heads_text(const std::vector<attention::SharedMatrix>& matrices, std::size_t n_heads,
                       std::size_t n_sequences);

}  // namespace core::formats
