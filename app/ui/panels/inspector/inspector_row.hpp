#pragma once

#include <cstddef>

#include "app/ui/widgets/drawing.hpp"

namespace app::panels {

/// Heads that are listed one by one; of more it is said how many.
constexpr std::size_t most_heads = 16;

/// The row of a cell: of a weight to whom it goes, its sum and how spread it is; else its smallest and
/// largest.
void draw_row(widgets::Pen& pen, const CellRef& cell);

/// The same cell in every head, each a link; nothing for a stage that is not one a head.
void draw_other_heads(widgets::Pen& pen, const CellRef& cell);

/// The hovered, else the pinned query of the token view: to whom it listens in each head with lines.
void draw_query(widgets::Pen& pen);

/// How alike the heads are, as a matrix in the order they are sorted by, with the most and the least alike of
/// one head.
void draw_likeness(widgets::Pen& pen, std::size_t head);

}  // namespace app::panels
