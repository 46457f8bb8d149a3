#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// What leads to the picture from the titles of the strip.
constexpr const char* turning_link = "as arrows";

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
