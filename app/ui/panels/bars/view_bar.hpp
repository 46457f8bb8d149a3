#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// The row above the pictures: which view, whose colors, which head.
void draw_view_bar(const Frame& frame);

}  // namespace app::panels
