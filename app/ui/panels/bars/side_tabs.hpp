#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// Whether a narrow window shows the inspector below MODEL, and not EDIT.
bool inspects_in_place(const Frame& frame);

/// EDIT and INSPECTOR as tabs, where a window is too narrow for both.
void draw_side_tabs(const Frame& frame);
/// The height that they take; 0 in wider windows.
float side_tabs_height(const Frame& frame);

}  // namespace app::panels
