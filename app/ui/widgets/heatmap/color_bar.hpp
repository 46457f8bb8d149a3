#pragma once

#include <string>

#include "app/ui/widgets/heatmap/heatmap_drawn.hpp"

namespace app::widgets {

/// How far the low end of a bar below a picture may reach into the gap before it, at scale 1.
constexpr float bar_end_in_gap = 2;

/// The color bar below or beside a picture, with its ends, the true extremes as triangles, and the chosen
/// cell's value; for 0/1 stages a legend. What the picture cannot show as it is stands beside it in words.
void draw_bar(const Frame& frame, const Heatmap& map, const Drawn& d, const ColorScale& scale);

/// A bar of these colors alone with its ends at both sides, from a point at its left on; returns its width.
float draw_plain_bar(const Frame& frame, const ColorScale& scale, ImVec2 left_middle, float width);

/// The end of a range as it stands beside the bar: whole ends bare, others with as many decimals as say
/// something.
std::string end_text(double value);

}  // namespace app::widgets
