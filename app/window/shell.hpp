#pragma once

#include "app/ui/frame.hpp"

namespace app {

/// Draws the whole window: four regions with splitters, and in each its panels of table_of_panels.
void draw_window(const Frame& frame);

}  // namespace app
