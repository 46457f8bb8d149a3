#pragma once

#include "app/ui/frame.hpp"

namespace app::widgets {

/// The colours of one map of numbers, and where its numbers stand along its colour bar.
struct ColourScale {
  render::ColourMap map = render::ColourMap::values;
  bool dark = true;
  Ends ends;

  bool is_logarithmic() const { return ends.least > 0 && map != render::ColourMap::mask; }
  Rgb colour(double number) const;
  /// 0 … 1 from the bar's low end to its high one, clamped.
  double share(double number) const;
  /// The number that stands there.
  double number_at(double share) const;
};

/// The map of colours that was chosen for numbers of a kind.
render::ColourMap chosen_map(const ColourChoice& colours, core::attention::Colouring colouring);

}  // namespace app::widgets
