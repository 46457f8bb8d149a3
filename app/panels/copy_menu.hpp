#pragma once

#include "app/frame.hpp"

namespace app::panels {

/// The lines of "Copy as": matrix, row and number in every form, decimals, and the model as a program.
/// Landmarks "copy/matrix/csv", "copy/decimals/3", "copy/program".
void draw_copy_lines(const Frame& frame, const std::optional<CellRef>& cell);

/// The same for the cell under the mouse when its heatmap is clicked with the right button.
void draw_copy_popup(const Frame& frame);

}  // namespace app::panels
