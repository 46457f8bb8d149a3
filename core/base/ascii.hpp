#pragma once

#include <string>
#include <string_view>

/// Text byte by byte: only ASCII is told apart.
namespace core::text {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// A capital as its small letter.
constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
std::string lower(std::string_view text);

/// The text without the blanks at both ends.
std::string_view trimmed(std::string_view text, std::string_view blanks = " \t");

/// The order of names in which numbers count as numbers do: "h.2" comes before "h.10".
bool comes_before(std::string_view a, std::string_view b);

}  // namespace core::text
