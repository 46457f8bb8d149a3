#pragma once

#include "app/ui/widgets/pen.hpp"

namespace app::panels {

/// Of a number that enters the attention of a layer of a whole model, or leaves it: how it comes out of the
/// residual stream, and what the stream is made of; links lead to the layers before and behind. Nothing for
/// other cells.
void draw_stream(widgets::Pen& pen, const CellRef& cell);

}  // namespace app::panels
