#pragma once

#include <functional>
#include <optional>
#include <string>

#include "app/ui/frame.hpp"
#include "core/base/positions.hpp"

namespace app::panels {

/// A stage's title as an item of that name: explained on hover, a press shows the stage alone, or the strip
/// again.
void draw_stage_title(const Frame& frame, const std::string& name, Stage stage, ImFont* font,
                      ImVec2 left_top);

/// What can be done with the stage whose heatmap was drawn last: a double click shows it alone, or the strip
/// again.
void handle_stage(const Frame& frame, Stage stage);

/// The strip: every stage of the chosen head in four lines that read like text.
void draw_stages(const Frame& frame);

/// One stage as large as the view allows, with the others as thumbnails above it and the chosen row and
/// column as profiles.
void draw_large(const Frame& frame);

/// Whether a stage shown alone has the picture below it: one that rotary positions made.
bool has_turning(const Frame& frame, Stage stage);

/// How high the picture is, in pixels.
float turning_height(const Frame& frame);

/// Rotary positions as a picture: the pairs of the pinned query and key as arrows that sliders turn, the
/// angles between them, their shares in the score, and the score at every distance.
///
/// An arrow that was dragged types its two numbers over, in one step of undo.
void draw_turning(const Frame& frame, ImVec2 at, float width);

}  // namespace app::panels
