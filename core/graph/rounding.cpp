#include "core/graph/rounding.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace core::attention {
namespace {

/// Binary format: its digits, its smallest normal number, and the first number beyond its range.
struct Format {
  const char* name;
  int digits;
  double smallest, beyond;
};
constexpr std::array formats{// in the order of Precision
                             Format{"float64", 53, 0x1p-1022, std::numeric_limits<double>::infinity()},
                             Format{"float32", 24, 0x1p-126, 0x1p128}, Format{"float16", 11, 0x1p-14, 0x1p16},
                             Format{"bfloat16", 8, 0x1p-126, 0x1p128}, Format{"tf32", 11, 0x1p-126, 0x1p128}};

const Format& format_of(Precision precision) {
  return formats[static_cast<std::size_t>(precision)];
}

/// Rounds a number that is normal in the format by its bits, which is fast.
double rounded_normal(const Format& format, double number) {
  const int cut = 53 - format.digits;
  const auto bits = std::bit_cast<std::uint64_t>(number), last = std::uint64_t{1} << cut;
  const std::uint64_t to_even = last / 2 - 1 + ((bits >> cut) & 1);
  return std::bit_cast<double>((bits + to_even) & ~(last - 1));
}

/// Returns the distance of numbers below the smallest normal one.
double tiny_step(const Format& format) {
  return std::ldexp(format.smallest, 1 - format.digits);
}

double rounded_tiny(const Format& format, double number) {
  return std::rint(number / tiny_step(format)) * tiny_step(format);
}

/// Returns a rounded number of such a sign, or infinity beyond the range.
double within_range(const Format& format, double rounded) {
  return std::abs(rounded) < format.beyond ? rounded : std::copysign(arma::datum::inf, rounded);
}

double rounded(const Format& format, double number) {
  if (number == 0 || !std::isfinite(number)) return number;
  const bool normal = std::abs(number) >= format.smallest;
  return within_range(format, normal ? rounded_normal(format, number) : rounded_tiny(format, number));
}

}  // namespace

const char* name_of(Precision precision) {
  return format_of(precision).name;
}

double rounding_error(Precision precision, double number) {
  if (precision == Precision::float64 || !std::isfinite(number)) return 0;
  const Format& format = format_of(precision);
  const double unit = 1 / static_cast<double>(std::uint64_t{1} << format.digits);
  return unit * std::abs(number) + unit * format.smallest;
}

double rounded(Precision precision, double number) {
  return precision == Precision::float64 ? number : rounded(format_of(precision), number);
}

double randomly_rounded(Precision precision, double number, std::uint64_t random) {
  if (precision == Precision::float64 || number == 0 || !std::isfinite(number)) return number;
  const Format& format = format_of(precision);
  if (std::abs(number) < format.smallest) {
    const double share = static_cast<double>(random >> 11) * 0x1p-53;
    return std::floor(number / tiny_step(format) + share) * tiny_step(format);
  }
  const std::uint64_t mask = (std::uint64_t{1} << (53 - format.digits)) - 1;
  const auto bits = std::bit_cast<std::uint64_t>(number);
  return within_range(format, std::bit_cast<double>((bits + (random & mask)) & ~mask));
}

arma::mat rounded(Precision precision, arma::mat numbers) {
  const Format& format = format_of(precision);
  if (precision != Precision::float64) numbers.transform([&](double x) { return rounded(format, x); });
  return numbers;
}

double truncate_to_tf32(double number) {
  const Format& format = format_of(Precision::tf32);
  const double single = rounded(Precision::float32, number);
  if (!std::isfinite(single) || std::abs(single) < format.smallest) return single;
  const int n_cut = 53 - format.digits;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(single) >> n_cut << n_cut);
}

arma::mat reduced_precision_product(arma::mat a, arma::mat b, Precision factors,
                                    std::optional<Precision> sums) {
  a = rounded(factors, std::move(a));
  b = rounded(factors, std::move(b));
  if (!sums) return a * b;
  arma::mat sum(a.n_rows, b.n_cols);
  for (std::size_t j = 0; j < b.n_cols; ++j)
    for (std::size_t i = 0; i < a.n_rows; ++i)
      for (std::size_t k = 0; k < a.n_cols; ++k)
        sum(i, j) = rounded(*sums, sum(i, j) + rounded(*sums, a(i, k) * b(k, j)));
  return sum;
}

}  // namespace core::attention
