#pragma once

#include <cmath>
#include <limits>

namespace core::colour {

/// The one to show of two numbers of a block; a NaN wins and stays, −∞ loses.
///
/// All comparisons are made, whatever the first ones say: so the compiler can do several numbers at once.
template <bool is_signed>
double stronger(double a, double b) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  bool keep = a >= b;
  if constexpr (is_signed) keep = ((std::abs(a) >= std::abs(b)) & (a != -infinity)) | (b == -infinity);
  return keep | (a != a) ? a : b;
}

}  // namespace core::colour
