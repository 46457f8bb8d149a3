#pragma once

#include "app/ui/widgets/pen.hpp"

namespace app::panels {

/// The row of a cell: of a weight to whom it goes, its sum and how spread it is; else its smallest and
/// largest.
void draw_row(widgets::Pen& pen, const CellRef& cell);

/// The same cell in every head, each a link; nothing for a stage that is not one a head.
void draw_other_heads(widgets::Pen& pen, const CellRef& cell);

}  // namespace app::panels
