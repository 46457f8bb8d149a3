#pragma once

#include <imgui.h>
#include <array>
#include <optional>

#include "app/ui/frame.hpp"
#include "core/graph/explain.hpp"

namespace app::panels {

/// The step of the tour under way: an outline around what it points at, and a card beside that which says
/// what to do. Asks for the next step once it was done.
///
/// Marks "tour/card", "tour/next" and "tour/skip".
void draw_tour(const Frame& frame);

/// One stage as large as it fits, at its left what the pinned cell is made of and how it is worked out.
///
/// Marks "present/<stage>" and "present/from/<stage>".
void draw_presented_stage(const Frame& frame);

/// The line below what is presented: where one is, what goes on, the keys; and its height.
void draw_present_bar(const Frame& frame);

float present_bar_height(const Frame& frame);

/// Over the maps of the strip: the row of the newest token is lit, what is not computed when it is decoded is
/// covered, and of what a cache keeps nothing but later rows. Marks "decode/new/<stage>".
void draw_decoding_marks(const Frame& frame);

/// Which token is decoded and what is kept for it, with buttons, on one line. The height is that of
/// decoding_bar_height.
void draw_decoding_bar(const Frame& frame);

float decoding_bar_height(const Frame& frame);

/// Where a cell stands on the screen, if its stage is there.
struct CellPlace {
  ImVec2 min, max;
};

std::optional<CellPlace> place_of(const Frame& frame, const core::explain::Place& place);

/// The flight under way, over whatever maps are on the screen: the numbers of one step on their way, and the
/// cell that they make. Asks for the next moment of it when it runs.
///
/// Marks "flight/number/<k>" and "flight/target".
void draw_animation(const Frame& frame);

/// Buttons for the flight under way, on one line: back, play or stop, on, speed, close. The height is that of
/// animation_bar_height.
void draw_animation_bar(const Frame& frame);

float animation_bar_height(const Frame& frame);

}  // namespace app::panels
