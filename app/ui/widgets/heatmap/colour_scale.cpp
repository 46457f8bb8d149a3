#include "app/ui/widgets/heatmap/colour_scale.hpp"

#include "core/base/bar.hpp"

namespace app::widgets {
namespace {

core::colour::Shading shading_of(const ColourScale& s) {
  return {s.map, s.ends.low, s.ends.high, s.ends.least};
}

}  // namespace

Rgb ColourScale::colour(double number) const {
  return render::colour_at(map, dark, render::place_in_range(map, ends.low, ends.high, number, ends.least));
}

double ColourScale::share(double number) const {
  return core::colour::share_of_bar(shading_of(*this), number);
}

double ColourScale::number_at(double share) const {
  return core::colour::number_on_bar(shading_of(*this), share);
}

render::ColourMap chosen_map(const ColourChoice& colours, core::attention::Colouring colouring) {
  switch (colouring) {
    case core::attention::Colouring::weights:
      return colours.sequential;
    case core::attention::Colouring::mask:
      return render::ColourMap::mask;
    case core::attention::Colouring::signed_values:
      break;
  }
  return colours.diverging;
}

}  // namespace app::widgets
