#include "core/base/text.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "core/base/utf8.hpp"

namespace core::text {

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(text, result.begin(), [](char c) { return lower(c); });
  return result;
}

std::string_view trimmed(std::string_view text, std::string_view whitespace) {
  text.remove_prefix(std::min(text.find_first_not_of(whitespace), text.size()));
  return text.substr(0, text.find_last_not_of(whitespace) + 1);  // npos + 1 is 0
}

bool natural_less(std::string_view a, std::string_view b) {
  const auto number_of = [](std::string_view text) {
    return text.substr(0, std::ranges::find_if_not(text, is_digit) - text.begin());
  };
  while (!a.empty() && !b.empty()) {
    const std::string_view m = number_of(a), n = number_of(b);
    if (m.size() != n.size() && !m.empty() && !n.empty()) return m.size() < n.size();
    const std::size_t length = m.empty() || n.empty() ? 1 : m.size();
    if (const int order = a.substr(0, length).compare(b.substr(0, length)); order != 0) return order < 0;
    a.remove_prefix(length);
    b.remove_prefix(length);
  }
  return a.empty() && !b.empty();
}

std::string counted(std::size_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string tuple_text(const std::vector<std::size_t>& lengths) {
  const auto words = [](std::size_t length) { return std::to_string(length); };
  return "(" + joined(lengths, ", ", words) + (lengths.size() == 1 ? ",)" : ")");
}

std::string shape_text(std::size_t n_rows, std::size_t n_columns) {
  return fmt::format("{}×{}", n_rows, n_columns);
}

std::string gibibytes(std::uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / 0x1p30);
  return text;
}

std::string aligned_table(std::span<const std::vector<std::string>> rows) {
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

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j)
      diagonal =
          std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])}));
  }
  return row.back();
}

std::string suggestion(std::string_view word, std::initializer_list<std::string_view> known) {
  constexpr std::size_t longest = 40, farthest = 2;
  if (word.size() > longest) return "";
  const auto nearest =
      std::ranges::min_element(known, {}, [&](std::string_view k) { return edit_distance(word, k); });
  return edit_distance(word, *nearest) <= farthest ? "; did you mean \"" + std::string(*nearest) + "\"?" : "";
}

std::vector<FormulaPiece> formula_pieces(std::string_view formula) {
  std::vector<FormulaPiece> pieces;
  const auto take = [&](std::size_t length, bool subscript) {
    if (length > 0) pieces.push_back({formula.substr(0, length), subscript});
    formula.remove_prefix(length);
  };
  while (!formula.empty()) {
    take(std::min(formula.find('_'), formula.size()), false);
    if (formula.size() < 2) break;
    formula.remove_prefix(1);  // the underscore
    const std::size_t digits = std::min(formula.find_first_not_of("0123456789"), formula.size());
    take(std::max<std::size_t>(digits, 1), true);
  }
  return pieces;
}

}  // namespace core::text
