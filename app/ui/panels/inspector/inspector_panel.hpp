#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// The pinned cell, else the hovered one, in words with its value and its row.
void draw_inspector(const Frame& frame);

}  // namespace app::panels
