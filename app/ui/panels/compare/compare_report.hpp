#pragma once

#include "app/ui/widgets/drawing.hpp"

namespace app::panels {

/// What the check of somebody's tensors found: the first stage that differs, the likely cause with a button
/// that shows it in the live model.
void draw_compare_report(widgets::Pen& pen);

/// What was left out and how the rest was read, and a button to say by hand which tensor is which stage.
void draw_compare_matching(widgets::Pen& pen);

}  // namespace app::panels
