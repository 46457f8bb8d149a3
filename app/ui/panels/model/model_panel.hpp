#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// The height that MODEL needs without scrolling, in pixels.
float model_panel_height(const Frame& frame);

/// MODEL: what is computed, from the preset to the context length. Landmarks "model/…".
void draw_model(const Frame& frame);

}  // namespace app::panels
