#pragma once

#include "app/ui/frame.hpp"

namespace app {

/// Draws the whole window: four regions with splitters, and in each the panels of the table of panels.
void draw_window(const Frame& frame);

}  // namespace app
