#pragma once

#include "app/ui/widgets/pen.hpp"

namespace app::panels {

/// The hovered, else the pinned query of the token view: to whom it listens in each head with lines.
void draw_query(widgets::Pen& pen);

}  // namespace app::panels
