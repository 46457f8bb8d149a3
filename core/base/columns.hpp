#pragma once

#include <span>
#include <string>
#include <vector>

namespace core::text {

/// Rows of a table as lines, each column as wide as its widest cell and two blanks apart; a column whose
/// cells are all empty is left out. All rows have as many cells as the first.
std::string in_columns(std::span<const std::vector<std::string>> rows);

}  // namespace core::text
