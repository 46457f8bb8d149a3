#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// "Copy as" for the cell under the mouse when its heatmap is clicked with the right button: matrix, row and
/// number in every form, decimals, and the model as a program. Landmarks "menu/copy/matrix/csv",
/// "menu/copy/program".
void draw_copy_popup(const Frame& frame);

}  // namespace app::panels
