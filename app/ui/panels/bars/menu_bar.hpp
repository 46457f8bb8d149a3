#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// The menus and the document's title, in a window of Metrics::menu height made with
/// ImGuiWindowFlags_MenuBar.
void draw_menu_bar(const Frame& frame);

}  // namespace app::panels
