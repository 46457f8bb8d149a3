#include "core/base/colour_map.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/map_colours.hpp"

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
// Ends that sink into the ground as those above do; between them the published maps of Matplotlib at tenths.
constexpr std::array magma_dark{rgb(0x17161f), rgb(0x231148), rgb(0x3b0f70), rgb(0x641a80),
                                rgb(0x8c2981), rgb(0xb5367a), rgb(0xde4968), rgb(0xf66e5c),
                                rgb(0xfe9f6d), rgb(0xfece91), rgb(0xfcfdbf)};
constexpr std::array magma_light{rgb(0xf7f5ec), rgb(0xfede9f), rgb(0xfeb77e), rgb(0xfb8861),
                                 rgb(0xeb5760), rgb(0xc83e73), rgb(0x9e2f7f), rgb(0x721f81),
                                 rgb(0x4a1079), rgb(0x221150), rgb(0x0b0924)};
constexpr std::array cividis_dark{rgb(0x16202e), rgb(0x12305f), rgb(0x2a3f6d), rgb(0x434e6c),
                                  rgb(0x575d6d), rgb(0x6a6c71), rgb(0x7d7c78), rgb(0x948e77),
                                  rgb(0xada172), rgb(0xc8b866), rgb(0xfee838)};
constexpr std::array cividis_light{rgb(0xf6f4e6), rgb(0xeadb8a), rgb(0xc8b866), rgb(0xada172),
                                   rgb(0x948e77), rgb(0x7d7c78), rgb(0x6a6c71), rgb(0x575d6d),
                                   rgb(0x434e6c), rgb(0x2a3f6d), rgb(0x00224e)};
constexpr std::array greys_dark{rgb(0x1b1e22), rgb(0xf4f6f8)};
constexpr std::array greys_light{rgb(0xf4f5f7), rgb(0x14171a)};
// After ColorBrewer's RdBu: red is negative, as in its name.
constexpr std::array red_blue_dark{rgb(0xffb3a0), rgb(0xee7a62), rgb(0xcf4a43), rgb(0x98303a),
                                   rgb(0x55282f), rgb(0x22262b), rgb(0x223a52), rgb(0x245a85),
                                   rgb(0x3480b8), rgb(0x67a9d6), rgb(0xabd3ef)};
constexpr std::array red_blue_light{rgb(0x67001f), rgb(0xb2182b), rgb(0xd6604d), rgb(0xf4a582),
                                    rgb(0xfddbc7), rgb(0xf1f1f1), rgb(0xd1e5f0), rgb(0x92c5de),
                                    rgb(0x4393c3), rgb(0x2166ac), rgb(0x053061)};
constexpr std::array mask_dark{rgb(0x1b1e22), rgb(0x59626d)};
constexpr std::array mask_light{rgb(0xf1f2f4), rgb(0xaab3bd)};

constexpr std::array sequential{NamedMap{ColourMap::weights, "viridis"}, NamedMap{ColourMap::magma, "magma"},
                                NamedMap{ColourMap::cividis, "cividis"}, NamedMap{ColourMap::greys, "greys"}};
constexpr std::array diverging{NamedMap{ColourMap::values, "blue-orange"},
                               NamedMap{ColourMap::red_blue, "red-blue"}};

constexpr double first_step = 0.08;  // from 0 to the smallest number of a logarithmic range

/// How far a size is on the way from 0 to the largest, 0 … 1.
double share_of(double size, double largest, double least) {
  if (least > 0) {
    if (size < least) return 0;
    if (!(largest > least)) return 1;
    return first_step + (1 - first_step) * std::log(size / least) / std::log(largest / least);
  }
  return size / largest;
}

/// With 0 in the middle and one measure for both signs; of a range on one side of 0 that half of the map
/// alone.
double place_beside_zero(double low, double high, double number, double least) {
  const double largest = std::max(std::abs(low), std::abs(high));
  if (low < 0 && high > 0)
    return 0.5 + std::copysign(0.5, number) * share_of(std::abs(number), largest, least);
  const double nearest = least > 0 ? 0 : std::min(std::abs(low), std::abs(high));
  const double sign = low < 0 ? -0.5 : 0.5;
  return 0.5 + sign * share_of(std::abs(number) - nearest, largest - nearest, least);
}

}  // namespace

std::span<const Rgb> stops(ColourMap map, bool dark) {
  switch (map) {
    case ColourMap::weights:
      return dark ? std::span<const Rgb>(weights_dark) : weights_light;
    case ColourMap::values:
      return dark ? std::span<const Rgb>(values_dark) : values_light;
    case ColourMap::magma:
      return dark ? std::span<const Rgb>(magma_dark) : magma_light;
    case ColourMap::cividis:
      return dark ? std::span<const Rgb>(cividis_dark) : cividis_light;
    case ColourMap::greys:
      return dark ? std::span<const Rgb>(greys_dark) : greys_light;
    case ColourMap::red_blue:
      return dark ? std::span<const Rgb>(red_blue_dark) : red_blue_light;
    case ColourMap::mask:
      break;
  }
  return dark ? mask_dark : mask_light;
}

std::span<const NamedMap> sequential_maps() {
  return sequential;
}
std::span<const NamedMap> diverging_maps() {
  return diverging;
}

Rgb colour_at(ColourMap map, bool dark, double t) {
  const std::span<const Rgb> all = stops(map, dark);
  const auto [r, g, b, nothing] =
      colour_among(all.size(), t, [all](std::size_t k) { return channels(all[k]); });
  return {r, g, b};
}

double place_in_range(ColourMap map, double low, double high, double number, double least) {
  if (std::isnan(number)) return 0;
  const bool diverging = is_diverging(map);
  if (!(high > low)) return number < low ? 0 : number > high ? 1 : diverging ? 0.5 : 0.0;
  number = std::clamp(number, low, high);
  if (diverging) return std::clamp(place_beside_zero(low, high, number, least), 0.0, 1.0);
  if (least > 0) return std::clamp(share_of(std::max(number, 0.0), high, least), 0.0, 1.0);
  // Halves, so that the extent of the range cannot overflow.
  return std::clamp((number / 2 - low / 2) / (high / 2 - low / 2), 0.0, 1.0);
}

}  // namespace core::colour
