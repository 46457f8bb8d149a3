#pragma once

#include <string>

#include "core/out/display_list.hpp"

namespace core::figures {

/// A figure as a PNG file of scale times as many pixels in each direction.
///
/// Throws core::Error when the scale is not between 0.1 and 16, or the picture would have more than 200
/// million pixels.
std::string png_of(const DisplayList& figure, double scale);

}  // namespace core::figures
