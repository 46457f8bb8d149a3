#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// What a document of a file leaves out, assumes and does not use, as long as it is open: a line over the
/// views for what the model does and the program does not, and one for the rest; whole in a tooltip.
///
/// Landmarks "banner/left_out" and "banner/reservations".
void draw_banner(const Frame& frame);

/// How high it is: 0 where there is nothing to say.
float banner_height(const Frame& frame);

}  // namespace app::panels
