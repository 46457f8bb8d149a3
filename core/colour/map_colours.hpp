#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/colour/colour_map.hpp"

namespace core::colour {

/// The colours of a map in one theme, at hand for many numbers.
class MapColours {
 public:
  MapColours(ColourMap map, bool dark) : stops_(stops(map, dark)) {}

  /// The colour at t: 0 is the low end of the range, 1 the high end; outside it is clamped.
  Rgb operator()(double t) const {
    const double place = (t > 0 ? std::min(t, 1.0) : 0.0) * static_cast<double>(stops_.size() - 1);
    const std::size_t stop = std::min(static_cast<std::size_t>(place), stops_.size() - 2);
    const Rgb from = stops_[stop], to = stops_[stop + 1];
    const auto share = static_cast<float>(place - static_cast<double>(stop));
    const auto channel = [share](std::uint8_t x, std::uint8_t y) {
      return static_cast<std::uint8_t>((1 - share) * static_cast<float>(x) + share * static_cast<float>(y) + 0.5f);
    };
    return {channel(from.r, to.r), channel(from.g, to.g), channel(from.b, to.b)};
  }

 private:
  std::span<const Rgb> stops_;
};

}  // namespace core::colour
