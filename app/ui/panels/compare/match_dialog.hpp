#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// Which tensor is which stage, in which layout and of which layer, to be said by hand.
void draw_match_dialog(const Frame& frame);

}  // namespace app::panels
