#pragma once

#include "app/ui/frame.hpp"
#include "app/ui/widgets/drawing.hpp"

namespace app::panels {

/// Draws the line above the views that says whose gradient they show. Landmarks "gradient/…".
void draw_gradient_banner(const Frame& frame);

/// Returns its height in pixels; 0 where no gradient is shown.
float gradient_banner_height(const Frame& frame);

/// Draws the gradient of a cell: the numbers that it comes from, and those that it goes on to. Nothing where
/// no gradient is shown.
void draw_cell_gradient(Pen& pen, const CellRef& cell);

/// Draws what would raise the number: the largest partial derivatives of learned numbers, and a step along
/// or against them. Nothing where no gradient is shown.
void draw_gradient_step(Pen& pen);

}  // namespace app::panels
