#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// The ways to come to an A, as buttons below each other, at a point of the window; returns the y below them.
float draw_reference_buttons(const Frame& frame, ImVec2 at);

}  // namespace app::panels
