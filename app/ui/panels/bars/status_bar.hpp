#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// The line at the foot: what the mouse does here, the last message, the time of the computation and the
/// shape.
void draw_status(const Frame& frame);

}  // namespace app::panels
