#include "core/colour/rgb.hpp"

#include <algorithm>
#include <cmath>

namespace core::colour {
namespace {

double linear_light(std::uint8_t channel) {
  const double c = channel / 255.0;
  return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

double luminance(Rgb c) {
  return 0.2126 * linear_light(c.r) + 0.7152 * linear_light(c.g) + 0.0722 * linear_light(c.b);
}

double contrast(Rgb a, Rgb b) {
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

}  // namespace

Rgb mix(Rgb a, Rgb b, float share) {
  const auto channel = [share](std::uint8_t x, std::uint8_t y) {
    return static_cast<std::uint8_t>(std::lround(share * x + (1 - share) * y));
  };
  return {channel(a.r, b.r), channel(a.g, b.g), channel(a.b, b.b)};
}

Rgb readable_on(Rgb ground) {
  constexpr Rgb light = rgb(0xf6f8fa), dark = rgb(0x0c0f12);
  return contrast(light, ground) > contrast(dark, ground) ? light : dark;
}

}  // namespace core::colour
