#pragma once

#include <span>

#include "core/base/rgb.hpp"

namespace core::colour {

/// Which colours stand for numbers.
enum class ColourMap {
  weights,  ///< sequential: viridis, with 0 receding into the ground
  values,   ///< diverging around the middle: blue, orange
  mask,     ///< grey, for 0 and 1
  magma,    ///< the other sequential ones, again with 0 in the ground
  cividis,
  greys,
  red_blue  ///< the other diverging one
};

/// Whether a map has a middle for 0 and a side for each sign.
constexpr bool is_diverging(ColourMap map) {
  return map == ColourMap::values || map == ColourMap::red_blue;
}

/// A map that people can choose: its name in settings and in words.
struct NamedMap {
  ColourMap map;
  const char* name;
};
/// The sequential and the diverging maps, the usual ones first.
std::span<const NamedMap> sequential_maps();
std::span<const NamedMap> diverging_maps();

/// The colours a map goes through, evenly spaced from the low end of the range to the high one; at most 13.
std::span<const Rgb> stops(ColourMap map, bool dark);

/// The colour at t of a map: 0 is the low end of the range, 1 the high end; outside it is clamped.
Rgb colour_at(ColourMap map, bool dark, double t);

/// Where a number stands in low … high: 0 … 1, clamped; NaN is 0.
///
/// A range without extent is the middle of the diverging maps and the beginning of the others. In diverging
/// maps 0 is always the middle, and both signs have one measure. With least > 0 the measure is logarithmic:
/// numbers smaller than that in size stand where 0 stands, least itself a step beside it.
double place_in_range(ColourMap map, double low, double high, double number, double least = 0);

}  // namespace core::colour
