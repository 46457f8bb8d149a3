#include "core/check/stored_as.hpp"

#include <algorithm>
#include <cmath>

#include "core/graph/rounding.hpp"

namespace core::check {
namespace {

using attention::Precision;
using formats::Dtype;

/// A type of eight bits: its digits, its smallest normal number, and its largest.
struct Eight {
  int digits;
  double smallest, largest;
};
constexpr Eight e4m3{4, 0x1p-6, 448}, e5m2{3, 0x1p-14, 57344};

const Eight* eight_of(Dtype dtype) {
  return dtype == Dtype::f8_e4m3 ? &e4m3 : dtype == Dtype::f8_e5m2 ? &e5m2 : nullptr;
}

double last_digit(const Eight& type, double number) {
  const double size = std::max(std::abs(number), type.smallest);
  return std::ldexp(1, std::ilogb(size) + 1 - type.digits);
}

Precision precision_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return Precision::float32;
    case Dtype::f16:
      return Precision::float16;
    case Dtype::bf16:
      return Precision::bfloat16;
    default:
      return Precision::float64;
  }
}

}  // namespace

bool stands_for_more(Dtype dtype, double kept, double number) {
  const Eight* type = eight_of(dtype);
  if (!type) return std::isinf(kept) && attention::rounded(precision_of(dtype), number) == kept;
  if (!(std::abs(number) >= type->largest + last_digit(*type, type->largest) / 2)) return false;
  return std::isnan(kept) ||
         ((std::isinf(kept) || std::abs(kept) == type->largest) && (kept > 0) == (number > 0));
}

double storing_error(Dtype dtype, double number) {
  const Eight* type = eight_of(dtype);
  if (!type) return attention::rounding_error(precision_of(dtype), number);
  return std::isfinite(number) ? last_digit(*type, number) / 2 : 0;
}

Dtype coarsest_type(std::span<const double> numbers) {
  for (const Dtype type : {Dtype::bf16, Dtype::f16, Dtype::f32})
    if (std::ranges::all_of(numbers, [&](double x) {
          return std::isnan(x) || attention::rounded(precision_of(type), x) == x;
        }))
      return type;
  return Dtype::f64;
}

bool is_exact(Dtype dtype) {
  return !eight_of(dtype) && precision_of(dtype) == Precision::float64;
}

std::string rounding_words(Dtype dtype) {
  return is_exact(dtype) ? "" : formats::dtype_name(dtype);
}

}  // namespace core::check
