#pragma once

#include <string>

#include "app/ui/frame.hpp"

namespace app::panels {

/// The one menu of a stage, which a right click on the last item opens: large, folded, colors, numbers,
/// copy, export.
///
/// place parts the menus of items that mean the same stage. Landmarks as of draw_action_lines.
void draw_stage_menu(const Frame& frame, const char* place, Stage stage, std::size_t head);

/// The title of a stage as an item of that name over words that are drawn there: explained on hover, a press
/// shows the stage large, a right click opens its menu.
void draw_title_area(const Frame& frame, const std::string& name, Stage stage, std::size_t head, ImVec2 min,
                     ImVec2 size);

}  // namespace app::panels
