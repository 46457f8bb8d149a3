#include "core/files/written_number.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "core/base/number.hpp"
#include "core/base/text.hpp"

namespace core::formats::readers {
namespace {

constexpr std::string_view blanks_around = " \t\r";

/// A decimal without its sign.
struct Unsigned {
  std::string text;
  bool negative = false;
};

std::optional<Unsigned> without_sign(std::string_view field, bool decimal_comma) {
  field = text::trimmed(field, blanks_around);
  bool negative = false;
  for (const std::string_view sign : {"+", "-", "−"}) {
    if (!field.starts_with(sign)) continue;
    negative = sign != "+";
    field.remove_prefix(sign.size());
    break;
  }
  if (field.empty() || field.front() == '-' || field.front() == '+') return std::nullopt;
  std::string text = text::lower(field);
  if (text == "infinity") text = "inf";
  if (decimal_comma)
    if (const std::size_t comma = text.find(','); comma != text.npos) text[comma] = '.';
  return Unsigned{std::move(text), negative};
}

}  // namespace

std::optional<double> written_number(std::string_view field, bool decimal_comma) {
  const auto decimal = without_sign(field, decimal_comma);
  const auto number = decimal ? text::parse_number(decimal->text) : std::nullopt;
  if (!number) return std::nullopt;
  return decimal->negative ? -*number : *number;
}

bool is_written_beyond_float64(std::string_view field, bool decimal_comma) {
  const auto decimal = without_sign(field, decimal_comma);
  return decimal && text::is_beyond_float64(decimal->text);
}

double last_digit_half(std::string_view field) {
  field = text::trimmed(field, blanks_around);
  const std::size_t point = field.find_first_of(".,");
  const std::size_t exponent_at = std::min(field.find_first_of("eE"), field.size());
  if (point == field.npos || point > exponent_at) return 0;
  double exponent = 0;  // whose distance from the point no type of whole numbers need hold
  std::string_view digits = field.substr(std::min(exponent_at + 1, field.size()));
  if (digits.starts_with('+')) digits.remove_prefix(1);
  std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  return 0.5 * std::pow(10.0, exponent - static_cast<double>(exponent_at - point - 1));
}

}  // namespace core::formats::readers
