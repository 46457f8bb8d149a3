#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// Draws the maps of all heads of the run that is being learned, its buttons, curves and snapshots; trains on
/// while it plays.
void draw_learning(const Frame& frame);

/// Draws the task and the setup; each change starts the run again, but for batch, rate and steps.
void draw_learning_setup(const Frame& frame);

/// Draws what one should see, the selected head, a sequence with its answers, and what can be done with the
/// result.
void draw_learning_results(const Frame& frame);

}  // namespace app::panels
