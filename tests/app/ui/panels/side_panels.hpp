#pragma once

#include "app/ui/frame.hpp"

namespace gui {

/// The menu bar, MODEL over EDIT at the left, and the dialogs, as the window places them.
void draw_side_panels(const app::Frame& frame);

/// The strip in a window of its own.
void draw_strip(const app::Frame& frame);

}  // namespace gui
