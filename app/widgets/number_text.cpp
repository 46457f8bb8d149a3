#include "app/widgets/number_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/formats/number.hpp"

namespace app::widgets {
namespace {

constexpr int most_decimals = 4;
constexpr const char* minus = "\u2212";

/// The digits of |number| with so many decimals, or nothing when it is longer than anyone would show.
std::string digits_of(double number, int decimals) {
  std::array<char, 340> digits;
  const auto [end, error] =
      std::to_chars(digits.data(), digits.data() + digits.size(), std::fabs(number), std::chars_format::fixed, decimals);
  return error == std::errc() ? std::string(digits.data(), end) : std::string();
}

int letters_of(double number, int decimals) {
  if (number == 0) return 1;
  return static_cast<int>(digits_of(number, decimals).size()) + (std::signbit(number) ? 1 : 0);
}

/// How many of four decimals are more than zeros.
int needed_decimals(double number) {
  const std::string digits = digits_of(number, most_decimals);
  const std::size_t last = digits.find_last_not_of('0'), point = digits.find('.');
  return last == digits.npos || last <= point ? 0 : static_cast<int>(last - point);
}

}  // namespace

std::string number_text(double number, int decimals) {
  if (std::isnan(number)) return "NaN";
  const std::string sign = std::signbit(number) && number != 0 ? minus : "";
  if (std::isinf(number)) return sign + "∞";
  if (number == 0) return "0";
  return sign + digits_of(number, decimals);
}

int shared_decimals(const arma::mat& numbers, std::size_t first_row, std::size_t end_row, std::size_t first_column,
                    std::size_t end_column, int letters) {
  int fitting = most_decimals, needed = 0;
  for (std::size_t column = first_column; column < end_column; ++column)
    for (std::size_t row = first_row; row < end_row; ++row) {
      const double number = numbers(row, column);
      if (!std::isfinite(number)) continue;
      while (fitting >= 0 && letters_of(number, fitting) > letters) --fitting;
      needed = std::max(needed, needed_decimals(number));
    }
  return std::min(fitting, needed);
}

double largest_magnitude(const arma::mat& numbers) {
  double largest = 0;
  for (const double number : numbers)
    if (std::isfinite(number)) largest = std::max(largest, std::fabs(number));
  return largest;
}

std::optional<double> read_number(std::string text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.back())) text.pop_back();
  text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), blank));
  if (const std::size_t at = text.find(minus); at != text.npos) text.replace(at, std::string_view(minus).size(), "-");
  if (const std::size_t at = text.find(','); at != text.npos) text[at] = '.';
  if (text.starts_with('+')) text.erase(0, 1);
  const auto parsed = core::formats::parse_number(text);
  return parsed && std::isfinite(*parsed) ? parsed : std::nullopt;
}

}  // namespace app::widgets
