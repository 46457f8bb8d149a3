#include "core/formats/readers/written_number.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "core/formats/files/number.hpp"

namespace core::formats::readers {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  const std::size_t end = text.find_last_not_of(" \t\r") + 1;  // npos + 1 is 0
  return text.substr(begin, end > begin ? end - begin : 0);
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return result;
}

}  // namespace

std::optional<double> written_number(std::string_view field, bool decimal_comma) {
  field = trimmed(field);
  bool negative = false;
  for (const std::string_view sign : {"+", "-", "−"}) {
    if (!field.starts_with(sign)) continue;
    negative = sign != "+";
    field.remove_prefix(sign.size());
    break;
  }
  if (field.empty() || field.front() == '-' || field.front() == '+') return std::nullopt;
  std::string text = lower(field);
  if (text == "infinity") text = "inf";
  if (decimal_comma)
    if (const std::size_t comma = text.find(','); comma != text.npos) text[comma] = '.';
  const auto number = parse_number(text);
  if (!number) return std::nullopt;
  return negative ? -*number : *number;
}

double last_digit_half(std::string_view field) {
  field = trimmed(field);
  const std::size_t point = field.find_first_of(".,");
  const std::size_t exponent_at = std::min(field.find_first_of("eE"), field.size());
  if (point == field.npos || point > exponent_at) return 0;
  int exponent = 0;
  std::string_view digits = field.substr(std::min(exponent_at + 1, field.size()));
  if (digits.starts_with('+')) digits.remove_prefix(1);
  std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  return 0.5 * std::pow(10.0, exponent - static_cast<int>(exponent_at - point - 1));
}

}  // namespace core::formats::readers
