#pragma once

#include <imgui.h>

#include "app/widgets/heatmap_view.hpp"

namespace app::widgets {

/// Draws the colour bar of a heatmap below or beside its picture: true ends, and two triangles at the smallest and the largest number.
/// For a dropout mask it is a legend of the two values instead.
void draw_bar(const Frame& frame, const Heatmap& map, Ends ends, ImVec2 picture_min, ImVec2 picture_max);

}  // namespace app::widgets
