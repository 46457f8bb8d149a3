#pragma once

#include "app/ui/frame.hpp"
#include "app/ui/widgets/drawing.hpp"

namespace app::panels {

/// Draws, for a score or a weight of a whole model, the choice between its computation and its sources;
/// nothing for other cells. Returns whether the sources are shown. Landmarks "inspector/sources/…".
bool draw_sources_choice(Pen& pen, const CellRef& cell);

/// Draws the sources of a score: pairs of parts that sum to it, and what it loses without each part.
void draw_sources(Pen& pen, const CellRef& cell);

}  // namespace app::panels
