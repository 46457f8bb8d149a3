#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// The one menu of a stage, which a right click on the last item opens: large, folded, colours, numbers,
/// copy, export.
///
/// place parts the menus of items that mean the same stage. Landmarks as of draw_action_lines.
void draw_stage_menu(const Frame& frame, const char* place, Stage stage, std::size_t head);

}  // namespace app::panels
