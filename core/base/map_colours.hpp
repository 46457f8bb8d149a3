#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/colour_map.hpp"

namespace core::colour {

/// Red, green and blue as they are mixed, and nothing: four at once, in the compiler's own notation, take no
/// longer than one.
typedef float Channels __attribute__((vector_size(4 * sizeof(float))));

inline Channels channels(Rgb c) {
  return Channels{static_cast<float>(c.r), static_cast<float>(c.g), static_cast<float>(c.b), 0};
}

/// Red, green, blue and 0 at t between n stops, 0 the first one and 1 the last one; outside it is clamped.
template <class StopAt>
[[gnu::always_inline]] inline std::array<std::uint8_t, 4> colour_among(std::size_t n, double t,
                                                                       StopAt stop_at) {
  typedef std::int32_t Whole __attribute__((vector_size(4 * sizeof(std::int32_t))));
  typedef std::uint8_t Bytes __attribute__((vector_size(4)));
  const double place = (t > 0 ? std::min(t, 1.0) : 0.0) * static_cast<double>(n - 1);
  const auto stop = std::min(static_cast<std::int32_t>(place), static_cast<std::int32_t>(n) - 2);
  const auto share = static_cast<float>(place - stop);
  const Channels mixed = (1 - share) * stop_at(static_cast<std::size_t>(stop)) +
                         share * stop_at(static_cast<std::size_t>(stop) + 1) + 0.5f;
  return std::bit_cast<std::array<std::uint8_t, 4>>(
      __builtin_convertvector(__builtin_convertvector(mixed, Whole), Bytes));
}

/// The colours of a map in one theme, at hand for many numbers.
class MapColours {
 public:
  MapColours(ColourMap map, bool dark) {
    for (const Rgb& stop : stops(map, dark)) stops_.push_back(channels(stop));
  }

  /// Red, green, blue and 0 at t: 0 is the low end of the range, 1 the high end; outside it is clamped.
  std::array<std::uint8_t, 4> operator()(double t) const {
    return colour_among(stops_.size(), t, [this](std::size_t k) { return stops_[k]; });
  }

 private:
  std::vector<Channels> stops_;
};

}  // namespace core::colour
