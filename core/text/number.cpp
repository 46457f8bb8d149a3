#include "core/text/number.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace core::text {

void append_number(std::string& text, double number) {
  if (std::isnan(number)) {  // to_chars would show the sign of a NaN, which means nothing
    text += "nan";
    return;
  }
  std::array<char, 32> digits;  // the longest is -2.2250738585072014e-308
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  text.append(digits.data(), end);
}

std::string number_text(double number) {
  std::string text;
  append_number(text, number);
  return text;
}

std::optional<double> parse_number(std::string_view text) {
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text.find_first_not_of("0123456789.eE+-") != text.npos)
    return std::nullopt;  // from_chars knows more words
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> take_whole_number(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

std::optional<std::uint64_t> parse_whole_number(std::string_view text) {
  const auto number = take_whole_number(text);
  return text.empty() ? number : std::nullopt;
}

}  // namespace core::text
