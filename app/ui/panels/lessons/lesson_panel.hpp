#pragma once

#include <string_view>

#include "app/ui/frame.hpp"

namespace app::panels {

/// Whether the lesson stands on top of the inspector and not below the view: that of a whole model does,
/// beside its maps.
bool lesson_is_beside(const Frame& frame);
/// Draws it there; the marks are those of draw_lesson().
void draw_lesson_beside(const Frame& frame);

/// Outlines what the lesson's step speaks of, and covers the other stages of the strip.
///
/// To be called inside a panel's window after the panel was drawn; it marks only what lies in that window.
void draw_lesson_marks(const Frame& frame, std::string_view panel);

/// How high the lesson's place at the foot of the centre is; 0 without a lesson.
float lesson_panel_height(const Frame& frame, float width);

/// The step of the lesson: what it says, what to try, and the keys that lead on.
void draw_lesson(const Frame& frame);

/// "Terms of this step", for the inspector; nothing without a lesson.
void draw_lesson_words(const Frame& frame);

/// How high the pictures of the lesson's step are, at most that much; 0 when it has none.
float exhibit_height(const Frame& frame, float most);

/// The pictures of the lesson's step, side by side above the stages.
void draw_exhibit(const Frame& frame);

}  // namespace app::panels
