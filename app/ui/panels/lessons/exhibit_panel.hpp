#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// How high the pictures of the lesson's step are, at most that much; 0 when it has none.
float exhibit_height(const Frame& frame, float most);

/// The pictures of the lesson's step, side by side above the stages.
void draw_exhibit(const Frame& frame);

}  // namespace app::panels
