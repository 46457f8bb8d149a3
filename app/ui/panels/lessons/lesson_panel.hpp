#pragma once

#include <string_view>

#include "app/ui/frame.hpp"

namespace app::panels {

/// Returns whether the lesson is above the inspector and not below the view, as for a whole model in the
/// Layers view.
bool lesson_is_in_inspector(const Frame& frame);
/// Draws the lesson there; the landmarks are those of draw_lesson().
void draw_lesson_in_inspector(const Frame& frame);

/// Outlines the focus of the lesson's step, and dims the other stages of the strip.
///
/// Must be called inside a panel's window after drawing the panel; marks only parts of that window.
void draw_lesson_marks(const Frame& frame, std::string_view panel);

/// Returns the height of the lesson below the view, in pixels; 0 if it is not there.
float lesson_panel_height(const Frame& frame, float width);

/// Draws the step of the lesson: its text, the task to try, and the navigation keys.
void draw_lesson(const Frame& frame);

/// Draws title, text and task of the lesson's step for an audience, marked "present/lesson".
void draw_presented_lesson(const Frame& frame, float width);
float presented_lesson_height(const Frame& frame, float width);

/// Draws "Terms of this step" for the inspector; nothing without a lesson.
void draw_lesson_terms(const Frame& frame);

/// Returns the height of the pictures of the lesson's step, at most `most`; 0 without pictures.
float lesson_pictures_height(const Frame& frame, float most);

/// Draws the pictures of the lesson's step in a row above the stages.
void draw_lesson_pictures(const Frame& frame);

}  // namespace app::panels
