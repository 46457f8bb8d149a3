#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// What stands inside Dialog::draw_model. Landmarks "draw/…".
void draw_draw_dialog(const Frame& frame);

}  // namespace app::panels
