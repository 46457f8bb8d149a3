#pragma once

#include "app/ui/frame.hpp"

namespace app {

/// The window when its views cannot be drawn: why, the menus and the dialogs, so that work can be saved and
/// what is in the way be left.
void draw_plain_window(const Frame& frame);

}  // namespace app
