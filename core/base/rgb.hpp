#pragma once

#include <cstdint>

namespace core::colour {

/// One colour, 8 bits a channel.
struct Rgb {
  std::uint8_t r = 0, g = 0, b = 0;
  friend bool operator==(const Rgb&, const Rgb&) = default;
};

/// 0xRRGGBB as it is written in style sheets.
constexpr Rgb rgb(std::uint32_t hex) {
  return {static_cast<std::uint8_t>(hex >> 16), static_cast<std::uint8_t>(hex >> 8),
          static_cast<std::uint8_t>(hex)};
}

/// share of a, the rest b; share 0 … 1.
Rgb mix(Rgb a, Rgb b, float share);

/// Of the two number colours the one that contrasts more with the ground (relative luminance, WCAG 2).
Rgb readable_on(Rgb ground);

}  // namespace core::colour
