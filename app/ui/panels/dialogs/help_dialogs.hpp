#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// All terms with their meanings, in a scrolling list.
void draw_glossary_dialog(const Frame& frame);

/// What stands inside Dialog::keys: every key, out of the table of actions. Landmarks "dialog/keys/0", ….
void draw_key_sheet(const Frame& frame);

}  // namespace app::panels
