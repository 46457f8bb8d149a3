#include "core/base/color.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace core::color {
namespace {

using Lab = std::array<double, 3>;

double linear(std::uint8_t channel) {
  const double c = channel / 255.0;
  return c > 0.04045 ? std::pow((c + 0.055) / 1.055, 2.4) : c / 12.92;
}

double luminance(Rgb c) {
  return 0.2126 * linear(c.r) + 0.7152 * linear(c.g) + 0.0722 * linear(c.b);
}

/// CIE 1976 L*a*b* of a color of sRGB, white D65.
Lab lab_of(Rgb c) {
  const double r = linear(c.r), g = linear(c.g), b = linear(c.b);
  const auto f = [](double t) { return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116; };
  const double x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047), y = f(luminance(c)),
               z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

TEST(Palette, ThirtyTwoHeadsAreToldApartAndFromTheGround) {
  constexpr double told_apart = 20;  // 2.3 is just noticed, side by side
  for (const bool dark : {false, true}) {
    const Palette& p = palette(dark);
    const double ground = luminance(p.ground.back);
    for (std::size_t a = 0; a < 32; ++a) {
      const double own = luminance(p.head(a));
      EXPECT_GE((std::max(own, ground) + 0.05) / (std::min(own, ground) + 0.05), 3) << a;
      for (std::size_t b = 0; b < a; ++b) {
        const Lab one = lab_of(p.head(a)), other = lab_of(p.head(b));
        EXPECT_GE(std::hypot(one[0] - other[0], one[1] - other[1], one[2] - other[2]), told_apart)
            << "heads " << b << " and " << a << (dark ? ", dark" : ", light");
      }
    }
    EXPECT_EQ(p.head(32), p.head(0));
  }
}

}  // namespace
}  // namespace core::color
