#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// One stage of all heads at once, as small multiples.
void draw_heads(const Frame& frame);

}  // namespace app::panels
