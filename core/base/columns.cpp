#include "core/base/columns.hpp"

#include <algorithm>

#include "core/base/utf8.hpp"

namespace core::text {

std::string in_columns(std::span<const std::vector<std::string>> rows) {
  std::vector<std::size_t> widths(rows.empty() ? 0 : rows.front().size());
  for (const auto& row : rows)
    for (std::size_t k = 0; k < row.size(); ++k) widths[k] = std::max(widths[k], character_count(row[k]));
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t k = 0; k < row.size(); ++k)
      if (widths[k] > 0) line += row[k] + std::string(widths[k] + 2 - character_count(row[k]), ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace core::text
