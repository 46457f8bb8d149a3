#pragma once

#include <functional>
#include <string>

#include "app/ui/frame.hpp"
#include "core/base/positions.hpp"

namespace app::panels {

/// Draws a stage's title as an item of that name: explained on hover, a click shows the stage alone, or the
/// strip again.
void draw_stage_title(const Frame& frame, const std::string& name, Stage stage, ImFont* font, ImVec2 left_top,
                      const char* prefix = "");

/// Handles the mouse on the heatmap drawn last: a double click shows the stage alone, or the strip again.
void handle_stage(const Frame& frame, Stage stage);

/// Draws the strip: every stage of the chosen head in four lines, in reading order.
void draw_stages(const Frame& frame);

/// Draws one stage as large as the view allows, with the others as thumbnails above it and the chosen row and
/// column as profiles.
void draw_large(const Frame& frame);

/// Returns whether a stage shown alone has the RoPE view below it: rotated queries or keys.
bool has_rope_view(const Frame& frame, Stage stage);

/// Returns the height of the RoPE view, in pixels.
float rope_view_height(const Frame& frame);

/// Draws the RoPE view: the pairs of the pinned query and key as arrows that sliders rotate, the angles
/// between them, their shares in the score, and the score at every distance.
///
/// Dragging an arrow overrides its two numbers, in one undo step.
void draw_rope_view(const Frame& frame, ImVec2 at, float width);

}  // namespace app::panels
