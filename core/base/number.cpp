#include "core/base/number.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdlib>

namespace core {

double max_abs_finite(const arma::mat& numbers) {
  double largest = 0;
  for (const double number : numbers)
    if (std::isfinite(number)) largest = std::max(largest, std::abs(number));
  return largest;
}

}  // namespace core

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

std::string display_number(double number) {
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

/// Calls std::from_chars, or strtod where the library has from_chars for integers only, as libc++ up to 19.
std::from_chars_result read_decimal(std::string_view text, double& number) {
#ifdef __cpp_lib_to_chars
  return std::from_chars(text.data(), text.data() + text.size(), number);
#else
  const std::string decimal(text.substr(0, text.find_first_not_of("0123456789.eE+-")));
  char* end = nullptr;
  const double value = std::strtod(decimal.c_str(), &end);
  const std::string_view read = text.substr(0, static_cast<std::size_t>(end - decimal.c_str()));
  if (read.empty() || read.starts_with('+')) return {text.data(), std::errc::invalid_argument};
  const char* const rest = text.data() + read.size();
  const bool is_lost =
      value == 0 && read.substr(0, read.find_first_of("eE")).find_first_of("123456789") != read.npos;
  if (std::isinf(value) || is_lost) return {rest, std::errc::result_out_of_range};
  number = value;
  return {rest, std::errc()};
#endif
}

/// Returns whether a decimal outside the range of float64 is too small rather than too large.
bool is_below_float64(std::string_view decimal) {
  const std::size_t exponent_at = std::min(decimal.find_first_of("eE"), decimal.size());
  const std::string_view digits = decimal.substr(0, exponent_at);
  const std::size_t first = digits.find_first_of("123456789"),
                    point = std::min(digits.find('.'), digits.size());
  if (first == digits.npos) return true;
  if (exponent_at == decimal.size()) return first > point;
  std::string_view exponent = decimal.substr(exponent_at + 1);
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  long long power = exponent.starts_with('-') ? LLONG_MIN / 2 : LLONG_MAX / 2;  // if from_chars overflows
  std::from_chars(exponent.data(), exponent.data() + exponent.size(), power);
  return power < static_cast<long long>(first) - static_cast<long long>(point);
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text.find_first_not_of("0123456789.eE+-") != text.npos)
    return std::nullopt;  // from_chars accepts more words
  double number = 0;
  const auto [end, error] = read_decimal(text, number);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range && is_below_float64(text))
    return text.front() == '-' ? -0.0 : 0.0;
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

bool is_beyond_float64(std::string_view text) {
  if (text.find_first_not_of("0123456789.eE+-") != text.npos) return false;
  double number = 0;
  const auto [end, error] = read_decimal(text, number);
  return end == text.data() + text.size() && error == std::errc::result_out_of_range &&
         !is_below_float64(text);
}

std::optional<std::uint64_t> consume_unsigned(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

std::optional<std::uint64_t> parse_unsigned(std::string_view text) {
  const auto number = consume_unsigned(text);
  return text.empty() ? number : std::nullopt;
}

namespace {

std::string with_real_minus(const std::string& text) {
  return text.starts_with('-') ? "−" + text.substr(1) : text;
}

template <class Visit>
void for_each_finite(const arma::mat& m, CellRange r, Visit visit) {
  for (std::size_t j = r.column0; j < r.column1; ++j)
    for (std::size_t i = r.row0; i < r.row1; ++i)
      if (std::isfinite(m(i, j))) visit(m(i, j));
}

/// Returns the digits before the dot of a number rounded to two decimals: 9.996 becomes 10.00.
int digits_before_point(double largest) {
  constexpr double half = 0.005;
  return largest + half < 10 ? 1 : 1 + static_cast<int>(std::floor(std::log10(largest + half)));
}

constexpr int max_decimals_of_cells = 4;

/// Returns how many decimals of a number are not trailing zeros after rounding to `decimals`.
int needed_decimals(double value, int decimals) {
  constexpr std::array<double, 5> power{1, 10, 100, 1000, 10000};
  double rounded = std::round(std::abs(value) * power[decimals]);
  for (; decimals > 0 && std::fmod(rounded, 10) == 0; --decimals) rounded /= 10;
  return decimals;
}

}  // namespace

double unit_for(double largest, double below) {
  if (!(largest > 0 && largest < below)) return 1;
  if (largest >= 1e-5) return 0.001;
  return std::pow(10, std::max(-300.0, std::floor(std::log10(largest))));
}

std::string unit_text(double unit) {
  if (unit >= 0.001) return rounded(unit, unit >= 1 ? 0 : unit >= 0.01 ? 2 : 3);
  return "1e−" + std::to_string(std::lround(-std::log10(unit)));
}

int NumberExtents::characters(int max_decimals) const {
  const int shown = std::min(decimals, max_decimals);
  return std::max(words, whole + (shown > 0 ? 1 + shown : 0));
}

NumberExtents NumberExtents::in_pytorch_style() const {
  NumberExtents needs = *this;
  needs.decimals = max_decimals_of_cells;
  needs.words = words > 0 ? 4 : 0;  // "-inf"
  needs.as_pytorch = true;
  return needs;
}

NumberFormat NumberExtents::format(int max_characters, int max_decimals) const {
  const int room = std::clamp(max_characters - whole - 1, 0, max_decimals);  // one for the dot
  NumberFormat format;
  format.unit = unit;
  format.as_pytorch = as_pytorch;
  format.decimals = std::min(decimals, room);
  format.fits =
      std::max(whole, words) <= max_characters && format.decimals >= std::min(decimals, min_decimals);
  return format;
}

NumberExtents measure_numbers(const arma::mat& numbers, CellRange range, std::optional<double> unit) {
  double largest = 0, most_negative = 0;
  for_each_finite(numbers, range, [&](double v) {
    largest = std::max(largest, v);
    most_negative = std::max(most_negative, -v);
  });
  NumberExtents needs;
  for (std::size_t j = range.column0; j < range.column1; ++j)
    for (std::size_t i = range.row0; i < range.row1; ++i)
      if (!std::isfinite(numbers(i, j)))
        needs.words = std::max(needs.words, std::isnan(numbers(i, j)) ? 3 : 2);
  needs.unit = unit.value_or(unit_for(std::max(largest, most_negative)));
  for_each_finite(numbers, range, [&](double v) {
    if (needs.decimals < max_decimals_of_cells)
      needs.decimals = std::max(needs.decimals, needed_decimals(v / needs.unit, max_decimals_of_cells));
  });
  needs.whole = std::max(digits_before_point(largest / needs.unit),
                         most_negative > 0 ? 1 + digits_before_point(most_negative / needs.unit) : 0);
  return needs;
}

NumberFormat choose_format(const arma::mat& numbers, CellRange range, int max_characters,
                           std::optional<double> unit) {
  return measure_numbers(numbers, range, unit).format(max_characters);
}

std::string rounded(double value, int decimals) {
  std::array<char, 400> digits;
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed, decimals);
  const std::string text(digits.data(), end.ptr);
  const bool is_zero = text.find_first_of("123456789") == text.npos;
  return is_zero && text.starts_with('-') ? text.substr(1) : text;
}

std::string fixed(double value, int decimals) {
  if (std::isnan(value)) return "NaN";
  return with_real_minus(std::isinf(value) ? value > 0 ? "∞" : "-∞" : rounded(value, decimals));
}

std::string fraction_text(double share, int decimals) {
  constexpr int more = 2;
  if (!(share > 0 && share < 1)) return fixed(share, decimals);
  for (int d = decimals; d <= decimals + more; ++d) {
    const std::string text = rounded(share, d);
    if (text.find_first_of("123456789") != text.npos && !text.starts_with('1')) return text;
  }
  return share < 0.5 ? "≈0" : "≈1";
}

std::string scientific(double value) {
  std::array<char, 40> digits;
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::scientific, 1);
  return with_real_minus({digits.data(), end.ptr});
}

std::string cell_text(double value, const NumberFormat& format, bool plain_one) {
  if (format.as_pytorch) {
    if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    return rounded(value / format.unit, format.decimals);
  }
  if (value == 0) return "0";
  if (plain_one && value == 1) return "1";
  return fixed(value / format.unit, format.decimals);
}

}  // namespace core::text
