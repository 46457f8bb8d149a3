#pragma once

#include <optional>

#include "app/ui/frame.hpp"
#include "core/graph/explain.hpp"

namespace app::panels {

/// Draws the current step of the tour: an outline around its target, and a card next to it that says what to
/// do. Adds the command for the next step once this one is done.
///
/// Marks "tour/card", "tour/next" and "tour/skip".
void draw_tour(const Frame& frame);

/// Draws one stage as large as it fits, and at its left the operands and the computation of the pinned cell.
///
/// Marks "present/<stage>" and "present/from/<stage>".
void draw_presented_stage(const Frame& frame);

/// Draws the sentence of the presented view, or title, text and task of a lesson, above it.
///
/// Marks "present/heading" or "present/lesson".
void draw_presented_heading(const Frame& frame);

float presented_heading_height(const Frame& frame);

/// Draws the bar below a presentation: the position, the current step, the keys.
void draw_present_bar(const Frame& frame);

float present_bar_height(const Frame& frame);

/// Marks decoding on the maps of the strip: outlines the row of the newest token and dims the cells that are
/// not computed for it; of cached keys and values it dims only later rows. Marks "decode/new/<stage>".
void draw_decoding_marks(const Frame& frame);

/// Draws a line with the decoded token, the size of its cache, and buttons. The height is that of
/// decoding_bar_height.
void draw_decoding_bar(const Frame& frame);

float decoding_bar_height(const Frame& frame);

/// Returns the rectangle of a cell on the screen, if its stage is there.
std::optional<Rect> cell_rect(const Frame& frame, const core::explain::SourceCell& place);

/// Draws the animation in progress over the maps on the screen: the operands of one step moving to the cell
/// computed from them. Advances it while it plays.
///
/// Marks "flight/number/<k>" and "flight/target".
void draw_animation(const Frame& frame);

/// Draws the buttons of the animation on one line: back, play or stop, on, speed, close. The height is that
/// of animation_bar_height.
void draw_animation_bar(const Frame& frame);

float animation_bar_height(const Frame& frame);

}  // namespace app::panels
