#pragma once

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

}  // namespace app::widgets
