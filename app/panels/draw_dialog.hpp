#pragma once

#include "app/frame.hpp"

namespace app::panels {

/// Asks how the learned matrices are to be drawn; starts with the layers that the model has.
void open_draw_dialog(const Frame& frame);

/// What stands inside Dialog::draw_model. Landmarks "draw/…".
void draw_draw_dialog(const Frame& frame);

}  // namespace app::panels
