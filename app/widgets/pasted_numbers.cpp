#include "app/widgets/pasted_numbers.hpp"

#include <string>
#include <vector>

#include "app/widgets/fields.hpp"
#include "core/error.hpp"

namespace app::widgets {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  while (!lines.empty() && lines.back().find_first_not_of(" \t") == std::string_view::npos) lines.pop_back();
  return lines;
}

/// The strongest separator that occurs cuts, so that "1, 2" and "1 <tab> 2" are two numbers each.
char separator_of(std::string_view text) {
  for (const char c : {'\t', ';', ','})
    if (text.find(c) != text.npos) return c;
  return ' ';
}

std::vector<std::string> fields_of(std::string_view line, char separator) {
  std::vector<std::string> fields;
  for (std::size_t from = 0; from <= line.size();) {
    const std::size_t end = std::min(line.find(separator, from), line.size());
    if (separator != ' ' || end > from) fields.emplace_back(line.substr(from, end - from));
    from = end + 1;
  }
  return fields;
}

std::string at(std::size_t line, std::size_t column) {
  return "pasted text, line " + std::to_string(line + 1) + ", column " + std::to_string(column + 1) + ": ";
}

}  // namespace

arma::mat pasted_numbers(std::string_view text) {
  const auto lines = lines_of(text);
  if (lines.empty()) throw core::Error("pasted text: expected numbers, found nothing");
  const char separator = separator_of(text);
  const std::size_t n_columns = fields_of(lines.front(), separator).size();
  arma::mat numbers(lines.size(), n_columns);
  for (std::size_t row = 0; row < lines.size(); ++row) {
    const auto fields = fields_of(lines[row], separator);
    for (std::size_t column = 0; column < std::min(fields.size(), n_columns); ++column) {
      const auto number = read_number(fields[column]);
      if (!number)
        throw core::Error(at(row, column) + "expected a number, found \"" + fields[column].substr(0, 40) +
                          "\"");
      numbers(row, column) = *number;
    }
    if (fields.size() != n_columns)
      throw core::Error("pasted text, line " + std::to_string(row + 1) + ": expected " +
                        std::to_string(n_columns) + " numbers as in line 1, found " +
                        std::to_string(fields.size()));
  }
  return numbers;
}

}  // namespace app::widgets
