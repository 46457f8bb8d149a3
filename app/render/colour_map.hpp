#pragma once

#include <span>

#include "app/theme.hpp"

namespace app::render {

/// Which colours stand for numbers.
enum class ColourMap {
  weights,  ///< sequential
  values,   ///< diverging around the middle
  mask      ///< grey
};

/// The colour at t of a map: 0 is the low end of the range, 1 the high end; outside it is clamped.
Rgb colour_at(ColourMap map, bool dark, double t);

}  // namespace app::render
