#pragma once

#include <string>

#include "app/ui/frame.hpp"

namespace app::panels {

/// A stage's title as an item of that name: explained on hover, a press shows the stage alone, or the strip
/// again.
void draw_stage_title(const Frame& frame, const std::string& name, Stage stage, ImFont* font,
                      ImVec2 left_top);

/// What can be done with the stage whose heatmap was drawn last: a double click shows it alone, or the strip
/// again.
void handle_stage(const Frame& frame, Stage stage);

/// The way from the dropout mask's title to many masks.
constexpr const char* laboratory_link = "laboratory";

/// Whose numbers a stage shows when heads share them: "group 0 (heads 0, 1)"; else "".
std::string group_words(const Frame& frame, Stage stage);

/// The strip: every stage of the chosen head in four lines that read like text.
void draw_stages(const Frame& frame);

}  // namespace app::panels
