#include "core/colour/colour_map.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace core::colour {
namespace {

constexpr std::array weights_dark{rgb(0x1b1a2b), rgb(0x2f2152), rgb(0x443a83), rgb(0x3a538b),
                                  rgb(0x2f6c8e), rgb(0x24868e), rgb(0x1f9f88), rgb(0x3fbc73),
                                  rgb(0x7dd250), rgb(0xbfdf30), rgb(0xfde725)};
constexpr std::array weights_light{rgb(0xf6f4ea), rgb(0xe6ecb4), rgb(0xc3e07d), rgb(0x8ed26b),
                                   rgb(0x52bd79), rgb(0x27a585), rgb(0x238a8d), rgb(0x2f6c8e),
                                   rgb(0x3d4f8a), rgb(0x46327e), rgb(0x2e0f45)};
// From the most negative number through zero to the most positive one.
constexpr std::array values_dark{rgb(0x93c6f7), rgb(0x4b98dd), rgb(0x2a74b8), rgb(0x215484),
                                 rgb(0x213a55), rgb(0x22262b), rgb(0x46331f), rgb(0x774818),
                                 rgb(0xad6415), rgb(0xe0841f), rgb(0xffb866)};
constexpr std::array values_light{rgb(0x0d4679), rgb(0x17609f), rgb(0x3786c8), rgb(0x6aabde), rgb(0xa3cbec),
                                  rgb(0xd0e3f5), rgb(0xeef0f2), rgb(0xfbe0c2), rgb(0xf8c18a), rgb(0xee9b4e),
                                  rgb(0xd8741d), rgb(0xa4500a), rgb(0x7d3b05)};
constexpr std::array mask_dark{rgb(0x1b1e22), rgb(0x59626d)};
constexpr std::array mask_light{rgb(0xf1f2f4), rgb(0xaab3bd)};

}  // namespace

std::span<const Rgb> stops(ColourMap map, bool dark) {
  switch (map) {
    case ColourMap::weights:
      return dark ? std::span<const Rgb>(weights_dark) : weights_light;
    case ColourMap::values:
      return dark ? std::span<const Rgb>(values_dark) : values_light;
    case ColourMap::mask:
      break;
  }
  return dark ? mask_dark : mask_light;
}

Rgb colour_at(ColourMap map, bool dark, double t) {
  const std::span<const Rgb> s = stops(map, dark);
  const double place = (t > 0 ? std::min(t, 1.0) : 0.0) * static_cast<double>(s.size() - 1);
  const std::size_t stop = std::min(static_cast<std::size_t>(place), s.size() - 2);
  return mix(s[stop + 1], s[stop], static_cast<float>(place - static_cast<double>(stop)));
}

double place_in_range(ColourMap map, double low, double high, double number) {
  if (std::isnan(number)) return 0;
  if (number < low) return 0;
  if (number > high) return 1;
  if (!(high > low)) return map == ColourMap::values ? 0.5 : 0.0;
  // Halves, so that the extent of the range cannot overflow.
  return std::clamp((number / 2 - low / 2) / (high / 2 - low / 2), 0.0, 1.0);
}

}  // namespace core::colour
