#pragma once

#include <imgui.h>
#include <optional>

#include "app/ui/frame.hpp"

namespace app::panels {

/// The cells of a stage's map on the screen, of which a part may be shown.
struct ShownMap {
  Landmarks::Rect rect;
  CellWindow part;
  /// Where a column and a row begin, in pixels; beyond the map for those that are not shown.
  float x(double column) const;
  float y(double row) const;
};

/// The map of a stage that is presented, made of, alone or in the strip, whichever is on the screen.
std::optional<ShownMap> shown_map(const Frame& frame, const core::attention::StageInfo& stage);

/// The step of the tour under way: an outline around what it points at, and a card beside that which says
/// what to do. Asks for the next step once it was done.
///
/// Marks "tour/card", "tour/next" and "tour/skip".
void draw_tour(const Frame& frame);

/// One stage as large as it fits, at its left what the pinned cell is made of and how it is worked out.
///
/// Marks "present/<stage>" and "present/from/<stage>".
void draw_presented_stage(const Frame& frame);

/// The stage that is presented: that of the step in flight, of the pinned cell, of the lesson's step, the one
/// that was shown large, or the weights.
Stage presented_stage(const Frame& frame);

/// The line below what is presented: where one is, what goes on, the keys; and its height.
void draw_present_bar(const Frame& frame);
float present_bar_height(const Frame& frame);

}  // namespace app::panels
