#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// Gives a stage its numbers, kept, pasted or from a file, or computes it again; View::given_stage. Landmarks
/// "give/…".
void draw_give_dialog(const Frame& frame);

}  // namespace app::panels
