#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

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
