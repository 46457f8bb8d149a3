#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// The strip: every stage of the chosen head in four lines that read like text.
void draw_stages(const Frame& frame);

}  // namespace app::panels
