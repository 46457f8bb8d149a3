#pragma once

#include "app/ui/widgets/pen.hpp"
#include "core/graph/explain.hpp"

namespace app::widgets {

/// Draws a cell worked out, in numbered steps.
///
/// Pressing an operand pins its cell, or puts the edit cursor on it when it is a learned number; of long sums
/// the largest terms are shown, and all of them on demand. Landmarks: "inspector/step/0/line/2/a",
/// "inspector/step/0/more".
void draw_worked_cell(Pen& pen, const core::explain::Explanation& explanation);

/// The room that it takes at most as long as its sums are folded, from top to bottom, at scale 1.
float worked_cell_height(const core::explain::Explanation& explanation);

}  // namespace app::widgets
