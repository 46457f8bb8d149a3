#pragma once

#include "app/ui/widgets/drawing.hpp"
#include "core/graph/explain.hpp"

namespace app::panels {

/// How much each head and the bias add to a number of the output; nothing for other cells.
void draw_makers(widgets::Pen& pen, const core::explain::Explanation& explanation);

/// What a cell goes into, each a link: as far down as it is one cell alone, then the first rectangle.
void draw_leads_to(widgets::Pen& pen, const CellRef& cell);

}  // namespace app::panels
