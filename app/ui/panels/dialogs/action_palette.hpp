#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// The palette, when View::dialog asks for it: a field, and below it the actions that have its letters, best
/// first.
///
/// Up, Down, Page up and Page down choose, Enter or a click does, Esc or a click elsewhere closes. Landmarks
/// "palette/field", "palette/line/0", … of the lines in sight, "palette/<id>".
void draw_action_palette(const Frame& frame);

}  // namespace app::panels
