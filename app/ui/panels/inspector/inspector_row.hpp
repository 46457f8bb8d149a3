#pragma once

#include "app/ui/widgets/pen.hpp"

namespace app::panels {

/// Heads that are listed one by one; of more it is said how many.
constexpr std::size_t most_heads = 16;

/// The row of a cell: of a weight to whom it goes, its sum and how spread it is; else its smallest and
/// largest.
void draw_row(widgets::Pen& pen, const CellRef& cell);

/// The same cell in every head, each a link; nothing for a stage that is not one a head.
void draw_other_heads(widgets::Pen& pen, const CellRef& cell);

}  // namespace app::panels
