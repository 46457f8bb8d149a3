#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// All terms with their meanings, in a scrolling list.
void draw_glossary_dialog(const Frame& frame);

}  // namespace app::panels
