#include "core/base/rgb.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace core::colour {
namespace {

/// Of every channel's value, as pictures ask for the inks of a hundred thousand cells.
std::array<double, 256> linear_lights() {
  std::array<double, 256> lights{};
  for (std::size_t i = 0; i < lights.size(); ++i) {
    const double c = static_cast<double>(i) / 255;
    lights[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  return lights;
}

double luminance(Rgb c) {
  static const std::array<double, 256> lights = linear_lights();
  return 0.2126 * lights[c.r] + 0.7152 * lights[c.g] + 0.0722 * lights[c.b];
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
