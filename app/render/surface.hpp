#pragma once

#include <cstdint>
#include <vector>

#include "app/theme.hpp"

namespace app::render {

/// Fills the drawing area of the current context with one colour.
void clear_surface(int width, int height, Rgb colour);

/// The pixels of the drawing area, 4 bytes each (red, green, blue, 255), top row first.
std::vector<std::uint8_t> read_surface(int width, int height);

}  // namespace app::render
