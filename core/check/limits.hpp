#pragma once

#include <algorithm>
#include <armadillo>
#include <cmath>
#include <cstddef>

#include "core/base/number.hpp"
#include "core/check/stored_as.hpp"

/// How far somebody's numbers are from ours, and how far they may be.
namespace core::check {

/// How far numbers may be apart that are called equal: |theirs − ours| ≤ absolute + relative · |ours|, and
/// what the rounding of their type adds.
struct Tolerance {
  double relative = 1e-5, absolute = 1e-6;
  double of_largest = 0;  ///< this times the largest |ours| of a matrix is allowed besides
};

/// Sums in float32 round more often than once a stage.
constexpr double float32_sums = 16;

/// Whether a number is another one, the same once it is rounded to its type, or the same.
enum class Near { none, rounded, plain };

/// What may lie between two numbers.
struct Limits {
  Tolerance tolerance;
  formats::Dtype dtype;  ///< that theirs were rounded to
  double more = 0;       ///< allowed besides
  double sums = 0;  ///< so many roundings in float32, and in their type, to what such a sum may have added
  double added = 0;

  Near near(double distance, double ours) const {
    if (distance == 0) return Near::plain;  // also where ours is no number
    if (!std::isfinite(distance)) return Near::none;
    const double size = std::abs(ours) + added;
    const double asked = tolerance.absolute + tolerance.relative * std::abs(ours) + more +
                         (sums > 0 ? sums * storing_error(formats::Dtype::f32, size) : 0);
    if (distance <= asked) return Near::plain;
    return distance <= asked + std::max(1.0, sums) * storing_error(dtype, size) ? Near::rounded : Near::none;
  }
};

/// |theirs − ours|, 0 … ∞: 0 where their type does not hold ours, ∞ where one alone is NaN.
inline double distance(double theirs, double ours, formats::Dtype dtype) {
  return stands_for_more(dtype, theirs, ours) ? 0 : abs_difference(theirs, ours);
}

/// All numbers of two matrices, as they are compared one after the other.
struct Gap {
  Near near = Near::plain;  ///< of all of them
  double largest = 0;       ///< |theirs − ours|, 0 … ∞; NaN equals NaN, an infinity equals itself
  bool of_nan = false;      ///< which is ∞ as one alone is NaN
  std::size_t row = 0, column = 0;  ///< the first place that is so far apart
  std::size_t n_far = 0;            ///< how many are further apart than they may be

  void add(double theirs, double ours, const Limits& limits, std::size_t in_row, std::size_t in_column) {
    if (theirs == ours) return;
    const double d = distance(theirs, ours, limits.dtype);
    const Near here = limits.near(d, ours);
    near = std::min(near, here), n_far += here == Near::none;
    if (d > largest)
      largest = d, row = in_row, column = in_column, of_nan = std::isnan(theirs) || std::isnan(ours);
  }
};

/// The largest |number| that is finite, 0 without any.
inline double largest_finite(const arma::mat& numbers) {
  double largest = 0;
  for (const double number : numbers)
    if (std::isfinite(number)) largest = std::max(largest, std::abs(number));
  return largest;
}

}  // namespace core::check
