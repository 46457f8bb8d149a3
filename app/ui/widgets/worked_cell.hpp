#pragma once

#include "app/ui/widgets/pen.hpp"
#include "core/explain/explain.hpp"

namespace app::widgets {

/// Of a long sum, the terms that are shown until all are asked for.
constexpr std::size_t most_terms = 6;

/// Draws a cell worked out, in numbered steps.
///
/// Pressing an operand pins its cell, or puts the edit cursor on it when it is a learned number; of long sums
/// the largest terms are shown, and all of them on demand. Landmarks: "inspector/step/0/line/2/a",
/// "inspector/step/0/more".
void draw_worked_cell(Pen& pen, const core::explain::Explanation& explanation);

}  // namespace app::widgets
