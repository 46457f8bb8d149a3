#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// Draws the most probable tokens, and what the selected head attends to and does to the selected token.
void draw_selected_head(const Frame& frame);

/// Draws the left column of the Layers view: the model's sizes, prompt, selected layer and edits.
void draw_whole(const Frame& frame);

}  // namespace app::panels
