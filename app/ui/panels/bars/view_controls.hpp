#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// What the shown view can be told, from right to left; in a menu where it has not so much room.
void draw_view_controls(const Frame& frame, float right, float top, float room);

/// A tooltip over the last item of the bar.
void bar_tooltip(const Frame& frame, const char* text);

}  // namespace app::panels
