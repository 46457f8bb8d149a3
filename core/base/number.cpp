#include "core/base/number.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
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

std::string told_number(double number) {
  const std::string whole = number_text(number);
  if (!(std::abs(number) <= static_cast<double>(std::numeric_limits<float>::max()))) return whole;
  const auto single = static_cast<float>(number);
  if (static_cast<double>(single) != number) return whole;
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), single).ptr;
  const std::string brief(digits.data(), end);
  return brief.size() < whole.size() ? brief + " (float32)" : whole;
}

namespace {

/// Whether a decimal that float64 cannot hold is too small for it, and not too large.
bool is_below_float64(std::string_view decimal) {
  const std::size_t exponent_at = std::min(decimal.find_first_of("eE"), decimal.size());
  const std::string_view digits = decimal.substr(0, exponent_at);
  const std::size_t first = digits.find_first_of("123456789"),
                    point = std::min(digits.find('.'), digits.size());
  if (first == digits.npos) return true;
  if (exponent_at == decimal.size()) return first > point;
  std::string_view exponent = decimal.substr(exponent_at + 1);
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  long long power = exponent.starts_with('-') ? LLONG_MIN / 2 : LLONG_MAX / 2;  // unless it can be counted
  std::from_chars(exponent.data(), exponent.data() + exponent.size(), power);
  return power < static_cast<long long>(first) - static_cast<long long>(point);
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text.find_first_not_of("0123456789.eE+-") != text.npos)
    return std::nullopt;  // from_chars knows more words
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range && is_below_float64(text))
    return text.front() == '-' ? -0.0 : 0.0;
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

bool is_beyond_float64(std::string_view text) {
  if (text.find_first_not_of("0123456789.eE+-") != text.npos) return false;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return end == text.data() + text.size() && error == std::errc::result_out_of_range &&
         !is_below_float64(text);
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
