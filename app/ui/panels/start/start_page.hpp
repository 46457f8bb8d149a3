#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// Returns whether the start page fills the window in place of the panels.
bool shows_start_page(const Frame& frame);

/// Draws the doors, a small example, lessons and a whole model, and the recent files.
///
/// Marks "start/example", "start/lessons", "start/model", "start/model/other", "start/recent/0" … and
/// "start/show".
void draw_start_page(const Frame& frame);

}  // namespace app::panels
