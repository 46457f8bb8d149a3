#pragma once

#include <string_view>

#include "app/ui/frame.hpp"

namespace app::panels {

/// Outlines what the lesson's step speaks of, and covers the other stages of the strip.
///
/// To be called inside a panel's window after the panel was drawn; it marks only what lies in that window.
void draw_lesson_marks(const Frame& frame, std::string_view panel);

}  // namespace app::panels
