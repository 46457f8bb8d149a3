#pragma once

#include <string>

#include "app/ui/frame.hpp"

namespace app::widgets {

/// The colors of one map of numbers, and where its numbers stand along its color bar.
struct ColorScale {
  render::ColorMap map = render::ColorMap::values;
  bool dark = true;
  Ends ends;

  bool is_logarithmic() const { return ends.least > 0 && map != render::ColorMap::mask; }
  Rgb color(double number) const;
  /// 0 … 1 from the bar's low end to its high one, clamped.
  double share(double number) const;
  /// The number that stands there.
  double number_at(double share) const;
};

/// The map of colors that was chosen for numbers of a kind.
render::ColorMap chosen_map(const ColorChoice& colors, core::attention::Coloring coloring);

/// How far the low end of a bar below a picture may reach into the gap before it, at scale 1.
constexpr float bar_end_in_gap = 2;

/// A bar of these colors alone with its ends at both sides, from a point at its left on; returns its width.
float draw_plain_bar(const Frame& frame, const ColorScale& scale, ImVec2 left_middle, float width);

/// Whether the colors of weights hide nearly all of them: at least 95 % of those that are not masked are
/// below 0.02. Of large matrices cells of a grid are counted.
bool are_mostly_small(const Frame& frame, Stage stage, std::size_t head);
/// A link that makes colors logarithmic, or linear again; its width, where neither is of use 0.
float scale_link_width(const Frame& frame, Stage stage, std::size_t head);
void draw_scale_link(const Frame& frame, const std::string& place, ImVec2 right_middle);

/// The end of a range as it stands beside the bar: whole ends bare, others with as many decimals as say
/// something.
std::string end_text(double value);

}  // namespace app::widgets
