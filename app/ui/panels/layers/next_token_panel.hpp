#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// Right of the layers: which token comes next, now and before the edits, and what the selected head does.
void draw_next_token(const Frame& frame);

}  // namespace app::panels
