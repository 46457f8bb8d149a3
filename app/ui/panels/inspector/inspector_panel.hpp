#pragma once

#include <cstddef>

#include "app/ui/frame.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "core/graph/explain.hpp"

namespace app::panels {

/// The pinned cell, else the hovered one, in words with its value and its row.
void draw_inspector(const Frame& frame);

/// The row of a cell: of a weight to whom it goes, its sum and how spread it is; else its smallest and
/// largest.
void draw_row(Pen& pen, const CellRef& cell);

/// The same cell in every head, each a link; nothing for a stage that is not one a head.
void draw_other_heads(Pen& pen, const CellRef& cell);

/// The hovered, else the pinned query of the token view: to whom it listens in each head with lines.
void draw_query(Pen& pen);

/// How alike the heads are, as a matrix in the order they are sorted by, with the most and the least alike of
/// one head.
void draw_likeness(Pen& pen, std::size_t head);

/// How much each head and the bias add to a number of the output; nothing for other cells.
void draw_makers(Pen& pen, const core::explain::Explanation& explanation);

/// What a cell goes into, each a link: as far down as it is one cell alone, then the first rectangle.
void draw_leads_to(Pen& pen, const CellRef& cell);

}  // namespace app::panels
