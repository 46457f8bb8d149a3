#pragma once

#include <span>

#include "core/colour/rgb.hpp"

namespace core::colour {

/// Which colours stand for numbers.
enum class ColourMap {
  weights,  ///< sequential
  values,   ///< diverging around the middle
  mask      ///< grey
};

/// The colours a map goes through, evenly spaced from the low end of the range to the high one; at most 13.
std::span<const Rgb> stops(ColourMap map, bool dark);

/// The colour at t of a map: 0 is the low end of the range, 1 the high end; outside it is clamped.
Rgb colour_at(ColourMap map, bool dark, double t);

/// Where a number stands in low … high: 0 … 1, clamped; NaN is 0.
///
/// A range without extent is the middle of the signed map and the beginning of the others.
double place_in_range(ColourMap map, double low, double high, double number);

}  // namespace core::colour
