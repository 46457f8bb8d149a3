#include "core/base/bar.hpp"

#include <algorithm>
#include <cmath>

namespace core::colour {
namespace {

bool is_logarithmic(const Shading& s) {
  return s.least > 0 && s.map != ColourMap::mask;
}

/// How far a size is from the least to the largest, on a logarithmic measure.
double logarithmic(double size, double largest, double least) {
  if (!(size > least)) return 0;
  return largest > least ? std::log(size / least) / std::log(largest / least) : 1;
}

bool has_two_sides(const Shading& s) {
  return is_diverging(s.map) && s.low < 0 && s.high > 0;
}

double largest_of(const Shading& s) {
  return std::max(std::abs(s.low), std::abs(s.high));
}

}  // namespace

double share_of_bar(const Shading& s, double number) {
  if (!(s.high > s.low) || std::isnan(number)) return 0.5;
  const double v = std::clamp(number, s.low, s.high);
  // Halves, so that the extent of the range cannot overflow.
  if (!is_logarithmic(s)) return (v / 2 - s.low / 2) / (s.high / 2 - s.low / 2);
  const double along = logarithmic(std::abs(v), largest_of(s), s.least);
  if (has_two_sides(s)) return 0.5 + std::copysign(0.5, v) * along;
  return s.high > 0 ? along : 1 - along;
}

double number_on_bar(const Shading& s, double share) {
  if (!is_logarithmic(s)) return s.low + (s.high - s.low) * share;
  const auto size = [&](double along) { return s.least * std::pow(largest_of(s) / s.least, along); };
  if (has_two_sides(s)) return share < 0.5 ? -size(1 - 2 * share) : size(2 * share - 1);
  return s.high > 0 ? size(share) : -size(1 - share);
}

}  // namespace core::colour
