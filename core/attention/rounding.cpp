#include "core/attention/rounding.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

namespace core::attention {
namespace {

/// A binary format: its digits, its smallest normal number, and the first that it cannot hold.
struct Format {
  int digits;
  double smallest, beyond;
};

Format format_of(Precision precision) {
  switch (precision) {
    case Precision::float32:
      return {24, 0x1p-126, 0x1p128};
    case Precision::float16:
      return {11, 0x1p-14, 0x1p16};
    case Precision::bfloat16:
      return {8, 0x1p-126, 0x1p128};
    case Precision::float64:
      break;
  }
  return {53, 0x1p-1022, arma::datum::inf};
}

/// Of a number that has all its digits in the format: the others are cut from its bits, which is quick.
double rounded_normal(const Format& format, double number) {
  const int cut = 53 - format.digits;
  const auto bits = std::bit_cast<std::uint64_t>(number), last = std::uint64_t{1} << cut;
  const std::uint64_t to_even = last / 2 - 1 + ((bits >> cut) & 1);
  return std::bit_cast<double>((bits + to_even) & ~(last - 1));
}

double rounded_tiny(const Format& format, double number) {
  const double last_digit = std::ldexp(format.smallest, 1 - format.digits);
  return std::rint(number / last_digit) * last_digit;
}

double rounded(const Format& format, double number) {
  if (number == 0 || !std::isfinite(number)) return number;
  const bool normal = std::abs(number) >= format.smallest;
  const double nearest = normal ? rounded_normal(format, number) : rounded_tiny(format, number);
  return std::abs(nearest) < format.beyond ? nearest : std::copysign(arma::datum::inf, number);
}

}  // namespace

const char* name_of(Precision precision) {
  switch (precision) {
    case Precision::float32:
      return "float32";
    case Precision::float16:
      return "float16";
    case Precision::bfloat16:
      return "bfloat16";
    case Precision::float64:
      break;
  }
  return "float64";
}

int digits_of(Precision precision) {
  return format_of(precision).digits;
}

double rounded(Precision precision, double number) {
  return precision == Precision::float64 ? number : rounded(format_of(precision), number);
}

arma::mat rounded(Precision precision, arma::mat numbers) {
  const Format format = format_of(precision);
  if (precision != Precision::float64) numbers.transform([&](double x) { return rounded(format, x); });
  return numbers;
}

}  // namespace core::attention
