#pragma once

#include "app/ui/frame.hpp"
#include "app/ui/widgets/drawing.hpp"

namespace app::panels {

/// The hovered, else the chosen head: where it looks, and how alike the heads are.
void draw_head(widgets::Pen& pen);

/// A field that types a number over the pinned cell, and a link that takes it back. Marked "inspector/typed",
/// "inspector/computed".
void draw_typed(widgets::Pen& pen, const CellRef& cell);

/// Of a number that enters the attention of a layer of a whole model, or leaves it: how it comes out of the
/// residual stream, and what the stream is made of; links lead to the layers before and behind. Nothing for
/// other cells.
void draw_stream(widgets::Pen& pen, const CellRef& cell);

/// The pinned cell, else the hovered one, in words with its value and its row.
void draw_inspector(const Frame& frame);

}  // namespace app::panels
