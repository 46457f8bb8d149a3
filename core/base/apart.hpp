#pragma once

#include <cmath>
#include <limits>

namespace core {

/// Whether two numbers are the same; NaN is the same as NaN.
inline bool are_same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

/// |a − b|, 0 … ∞: 0 between NaN and NaN, and between an infinity and itself; ∞ between NaN and a number.
inline double apart(double a, double b) {
  if (are_same(a, b)) return 0;
  const double d = std::abs(a - b);
  return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
}

}  // namespace core
