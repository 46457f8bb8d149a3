#include "core/base/ascii.hpp"

#include <algorithm>

namespace core::text {

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(text, result.begin(), [](char c) { return lower(c); });
  return result;
}

std::string_view trimmed(std::string_view text, std::string_view blanks) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);  // npos + 1 is 0
}

bool comes_before(std::string_view a, std::string_view b) {
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

}  // namespace core::text
