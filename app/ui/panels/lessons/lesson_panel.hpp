#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// How high the lesson's place at the foot of the centre is; 0 without a lesson.
float lesson_panel_height(const Frame& frame, float width);

/// The step of the lesson: what it says, what to try, and the keys that lead on.
void draw_lesson(const Frame& frame);

/// "Words of this step", for the inspector; nothing without a lesson.
void draw_lesson_words(const Frame& frame);

}  // namespace app::panels
