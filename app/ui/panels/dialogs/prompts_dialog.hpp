#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// Draws the contents of Dialog::two_prompts: a second prompt, two answers, and what each patch of the first
/// prompt into the second recovers. Landmarks "prompts/…".
void draw_prompts_dialog(const Frame& frame);

}  // namespace app::panels
