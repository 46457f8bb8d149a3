#include "core/attention/rounding.hpp"

#include <algorithm>
#include <cmath>

namespace core::attention {
namespace {

/// A binary format: its digits, and the exponents of its smallest normal number and of what it cannot hold.
struct Format {
  int digits, smallest, beyond;
};

Format format_of(Precision precision) {
  switch (precision) {
    case Precision::float32:
      return {24, -126, 128};
    case Precision::float16:
      return {11, -14, 16};
    case Precision::bfloat16:
      return {8, -126, 128};
    case Precision::float64:
      break;
  }
  return {53, -1022, 1024};
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
  if (precision == Precision::float64 || number == 0 || !std::isfinite(number)) return number;
  const Format format = format_of(precision);
  const int last_digit = std::max(std::ilogb(number), format.smallest) - (format.digits - 1);
  const double nearest = std::scalbn(std::rint(std::scalbn(number, -last_digit)), last_digit);
  const bool fits = std::abs(nearest) < std::scalbn(1.0, format.beyond);
  return fits ? nearest : std::copysign(arma::datum::inf, number);
}

arma::mat rounded(Precision precision, arma::mat numbers) {
  if (precision != Precision::float64) numbers.transform([=](double x) { return rounded(precision, x); });
  return numbers;
}

}  // namespace core::attention
