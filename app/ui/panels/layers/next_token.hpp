#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// Whether there is a next token to show: a whole model that has read its prompt.
bool has_next_token(const Frame& frame);

/// The height of the strip of the next token, in pixels; 0 without one.
float next_token_height(const Frame& frame);

/// Draws the next token, its probability now and before the edits: on top of the inspector of every view.
///
/// A click returns to the most probable token when another one is selected. Marks "next/token" and
/// "next/probability".
void draw_next_token(const Frame& frame);

/// Draws, for an audience, the lesson's step or the prompt, and the next token large.
void draw_presented_prediction(const Frame& frame);

/// Draws the most probable tokens as a table; a click selects one. Marks "next/<id>".
void draw_token_table(const Frame& frame, float width);

}  // namespace app::panels
