#pragma once

#include "core/base/cells.hpp"

namespace core::colour {

/// Where a number stands along the colour bar of a range: 0 … 1 from its low end to its high one, clamped.
double share_of_bar(const Shading& shading, double number);

/// The number that stands there; on a logarithmic bar the numbers nearest to 0 are those of the least size.
double number_on_bar(const Shading& shading, double share);

}  // namespace core::colour
