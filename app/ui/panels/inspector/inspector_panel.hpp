#pragma once

#include <cstddef>

#include "app/ui/frame.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "core/graph/explain.hpp"

namespace app::panels {

/// Draws the pinned cell, else the hovered one, with its value and row; in Tokens a query, in Heads a head.
void draw_inspector(const Frame& frame);

/// Draws the row of a cell: for a weight the keys attended to, sum and entropy; else the smallest and largest
/// number.
void draw_row(Pen& pen, const CellRef& cell);

/// Draws the same cell in every head, each as a link; nothing for a stage without heads.
void draw_other_heads(Pen& pen, const CellRef& cell);

/// Draws the hovered, else the pinned query of Tokens: the keys it attends to in each head with lines.
void draw_query(Pen& pen);

/// Draws the similarity of the heads, as a matrix in their sort order, and the heads most and least similar
/// to one head.
void draw_similarity(Pen& pen, std::size_t head);

/// Draws the contribution of each head and the bias to a number of the output; nothing for other cells.
void draw_contributions(Pen& pen, const core::explain::Explanation& explanation);

/// Goes to a cell of another layer of a whole model and pins it there.
void go_to_layer(const Frame& frame, std::size_t layer, const CellRef& cell);

/// Draws links to the cells computed from a cell: downstream while it is one cell, then the first block.
void draw_downstream_cells(Pen& pen, const CellRef& cell);

}  // namespace app::panels
