#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// The text that the model reads, typed live, its tokens, and one token more or back.
void draw_prompt(const Frame& frame, float width);

}  // namespace app::panels
