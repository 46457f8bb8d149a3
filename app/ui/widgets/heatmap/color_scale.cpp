#include "app/ui/widgets/heatmap/color_scale.hpp"

#include "core/base/color.hpp"

namespace app::widgets {
namespace {

core::color::Shading shading_of(const ColorScale& s) {
  return {s.map, s.ends.low, s.ends.high, s.ends.least};
}

}  // namespace

Rgb ColorScale::color(double number) const {
  return render::color_at(map, dark, render::place_in_range(map, ends.low, ends.high, number, ends.least));
}

double ColorScale::share(double number) const {
  return core::color::share_of_bar(shading_of(*this), number);
}

double ColorScale::number_at(double share) const {
  return core::color::number_on_bar(shading_of(*this), share);
}

render::ColorMap chosen_map(const ColorChoice& colors, core::attention::Coloring coloring) {
  switch (coloring) {
    case core::attention::Coloring::weights:
      return colors.sequential;
    case core::attention::Coloring::mask:
      return render::ColorMap::mask;
    case core::attention::Coloring::signed_values:
      break;
  }
  return colors.diverging;
}

}  // namespace app::widgets
