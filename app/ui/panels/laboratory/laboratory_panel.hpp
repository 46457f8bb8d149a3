#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// Draws the dropout laboratory: one mask, the mean over many, how fast it converges, and ten ones.
void draw_laboratory(const Frame& frame);

}  // namespace app::panels
