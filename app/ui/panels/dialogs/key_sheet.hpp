#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// What stands inside Dialog::keys: every key, out of the table of actions. Landmarks "dialog/keys/0", ….
void draw_key_sheet(const Frame& frame);

}  // namespace app::panels
