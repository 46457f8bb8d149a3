#include "app/widgets/colour_scale.hpp"

#include <algorithm>
#include <cmath>

namespace app::widgets {
namespace {

/// How far a size is from the least to the largest, on a logarithmic measure.
double logarithmic(double size, double largest, double least) {
  if (!(size > least)) return 0;
  return largest > least ? std::log(size / least) / std::log(largest / least) : 1;
}

bool has_two_sides(const ColourScale& s) {
  return render::is_diverging(s.map) && s.ends.low < 0 && s.ends.high > 0;
}

/// The largest size of a range.
double largest_of(const Ends& ends) { return std::max(std::abs(ends.low), std::abs(ends.high)); }

}  // namespace

Rgb ColourScale::colour(double number) const {
  return render::colour_at(map, dark, render::place_in_range(map, ends.low, ends.high, number, ends.least));
}

double ColourScale::share(double number) const {
  if (!(ends.high > ends.low) || std::isnan(number)) return 0.5;
  const double v = std::clamp(number, ends.low, ends.high);
  if (!is_logarithmic()) return (v / 2 - ends.low / 2) / (ends.high / 2 - ends.low / 2);
  const double along = logarithmic(std::abs(v), largest_of(ends), ends.least);
  if (has_two_sides(*this)) return 0.5 + std::copysign(0.5, v) * along;
  return ends.high > 0 ? along : 1 - along;
}

double ColourScale::number_at(double share) const {
  if (!is_logarithmic()) return ends.low + (ends.high - ends.low) * share;
  const auto size = [&](double along) { return ends.least * std::pow(largest_of(ends) / ends.least, along); };
  if (has_two_sides(*this)) return share < 0.5 ? -size(1 - 2 * share) : size(2 * share - 1);
  return ends.high > 0 ? size(share) : -size(1 - share);
}

render::ColourMap chosen_map(const View& view, core::attention::Colouring colouring) {
  switch (colouring) {
    case core::attention::Colouring::weights: return view.colours.sequential;
    case core::attention::Colouring::mask: return render::ColourMap::mask;
    case core::attention::Colouring::signed_values: break;
  }
  return view.colours.diverging;
}

}  // namespace app::widgets
