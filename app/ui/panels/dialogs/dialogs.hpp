#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// The dialog that View::dialog names, over everything else. Enter confirms, Esc closes. Landmarks "dialog/…"
/// and "browser/…".
void draw_dialogs(const Frame& frame);

}  // namespace app::panels
