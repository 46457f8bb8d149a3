#pragma once

#include "app/ui/widgets/pen.hpp"

namespace app::panels {

/// The hovered, else the chosen head: where it looks, and how alike the heads are.
void draw_head(widgets::Pen& pen);

}  // namespace app::panels
