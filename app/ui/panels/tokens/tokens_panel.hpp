#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// Lines from every query to the keys it listens to, in the colors of the heads.
void draw_tokens(const Frame& frame);

}  // namespace app::panels
