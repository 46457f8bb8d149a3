#include "core/base/color.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string>

namespace core::color {
namespace {

TEST(ColorBar, IsStraightOrTakesEqualStepsForEqualRatiosWithASideForEachSign) {
  struct Case {
    Shading shading;
    double number, share;
  };
  for (const auto& [shading, number, share] :
       {Case{{ColorMap::weights, 0, 4}, 1, 0.25}, Case{{ColorMap::weights, 0, 4}, 3, 0.75},
        Case{{ColorMap::weights, 0, 1, 1e-4}, 1e-2, 0.5}, Case{{ColorMap::weights, 0, 1, 1e-4}, 1e-3, 0.25},
        Case{{ColorMap::values, -10, 10, 0.1}, -1, 0.25}, Case{{ColorMap::values, -10, 10, 0.1}, 1, 0.75}}) {
    EXPECT_NEAR(bar_fraction(shading, number), share, 1e-12);
    EXPECT_NEAR(number_at_bar_fraction(shading, share) / number, 1, 1e-12);
  }
  EXPECT_EQ(bar_fraction({ColorMap::weights, 0, 4}, 9), 1);
  EXPECT_EQ(bar_fraction({ColorMap::weights, 0, 1, 1e-4}, 0), 0);
  EXPECT_EQ(bar_fraction({ColorMap::values, 0, 0}, 0), 0.5) << "a range without extent";
}

TEST(ColorBar, GivesBackWhereANumberStands) {
  for (const Shading& s :
       std::array{Shading{ColorMap::values, -3, 7}, Shading{ColorMap::values, -5, 5, 0.01},
                  Shading{ColorMap::weights, 0, 2, 0.5}, Shading{ColorMap::values, -8, -2, 2}})
    for (const double share : {0.0, 0.2, 0.7, 1.0})
      EXPECT_NEAR(bar_fraction(s, number_at_bar_fraction(s, share)), share, 1e-12) << s.low << " " << share;
}

using testing::ElementsAre;

const arma::mat numbers{{1, -3, 0, 2, 0}, {0, 2, 0, 0, 4}, {5, 0, 0, 0, 0}};
constexpr BlockRange by_two_down{0, 2, 2}, by_two_across{0, 3, 2};

TEST(Pooled, IsTheLargestTheFarthestFromZeroOrTheMeanOfEachBlock) {
  EXPECT_THAT(pooled(ColorMap::weights, numbers, by_two_down, by_two_across), ElementsAre(2, 2, 4, 5, 0, 0));
  EXPECT_THAT(pooled(ColorMap::values, numbers, by_two_down, by_two_across), ElementsAre(-3, 2, 4, 5, 0, 0));
  EXPECT_THAT(pooled(ColorMap::mask, numbers, by_two_down, by_two_across), ElementsAre(0, 0.5, 2, 2.5, 0, 0));
  EXPECT_THAT(pooled(ColorMap::mask, numbers, {1, 2, 2}, {1, 3, 2}), ElementsAre(0, 0)) << "a part of it";
}

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(ColorMap, HasItsStopsIsLinearBetweenThemAndClampedOutside) {
  struct Case {
    ColorMap map;
    bool dark;
    double place;
    int color;
  };
  for (const auto& [map, dark, place, color] :
       {Case{ColorMap::weights, true, 0, 0x1b1a2b}, Case{ColorMap::weights, true, 0.5, 0x24868e},
        Case{ColorMap::weights, true, 1, 0xfde725}, Case{ColorMap::weights, false, 0.1, 0xe6ecb4},
        Case{ColorMap::values, true, 0, 0x93c6f7}, Case{ColorMap::values, true, 0.5, 0x22262b},
        Case{ColorMap::values, true, 0.6, 0x46331f}, Case{ColorMap::values, false, 0.5, 0xeef0f2},
        Case{ColorMap::values, false, 1, 0x7d3b05}, Case{ColorMap::mask, true, 1, 0x59626d},
        Case{ColorMap::mask, false, 0, 0xf1f2f4},
        Case{ColorMap::weights, true, 0.05, 0x251e3f},  // halfway from #1b1a2b to #2f2152
        Case{ColorMap::weights, true, -3, 0x1b1a2b}, Case{ColorMap::weights, true, 3, 0xfde725},
        Case{ColorMap::weights, true, std::nan(""), 0x1b1a2b}})
    EXPECT_EQ(color_at(map, dark, place), rgb(color)) << place;
}

TEST(PlaceInRange, IsTheShareOfTheRangeBelowANumber) {
  constexpr double largest = std::numeric_limits<double>::max();
  struct Case {
    ColorMap map;
    double low, high, number, place;
  };
  for (const auto& [map, low, high, number, place] :
       {Case{ColorMap::values, -2, 2, 1, 0.75}, Case{ColorMap::values, -2, 2, 5, 1},
        Case{ColorMap::values, -2, 2, -infinity, 0}, Case{ColorMap::values, 0, 0, 0, 0.5},
        Case{ColorMap::weights, 0, 0, 0, 0}, Case{ColorMap::values, -largest, largest, 0, 0.5},
        Case{ColorMap::values, -largest, largest, largest, 1}})
    EXPECT_DOUBLE_EQ(position_in_range(map, low, high, number), place) << low << " " << number;
}

TEST(PlaceInRange, OfADivergingMapHasZeroInTheMiddleWhateverTheEnds) {
  for (const ColorMap map : {ColorMap::values, ColorMap::red_blue}) {
    EXPECT_EQ(position_in_range(map, -1, 4, 0), 0.5);
    EXPECT_EQ(position_in_range(map, -1, 4, 4), 1);
    EXPECT_EQ(position_in_range(map, -1, 4, -1), 0.375) << "both signs have one measure";
    EXPECT_EQ(position_in_range(map, 2, 4, 3), 0.75) << "a range of one sign has half of the map";
    EXPECT_EQ(position_in_range(map, -4, -2, -4), 0);
  }
}

TEST(PlaceInRange, OnALogarithmicMeasureGivesEqualStepsToEqualRatiosInBothSigns) {
  const auto place = [](double v) { return position_in_range(ColorMap::weights, 0, 1, v, 0.001); };
  EXPECT_NEAR(place(1) - place(0.1), place(0.1) - place(0.01), 1e-12);
  EXPECT_EQ(place(1), 1);
  EXPECT_EQ(place(0.0009), 0) << "smaller than the least";
  EXPECT_GT(place(0.001), 0.05) << "the least itself is told apart from 0";
  const auto both = [](double v) { return position_in_range(ColorMap::values, -8, 8, v, 0.5); };
  EXPECT_EQ(both(0), 0.5);
  EXPECT_NEAR(both(3) + both(-3), 1, 1e-12);
  EXPECT_EQ(both(-8), 0);
}

TEST(ColorMaps, AllStartInTheGroundAndAreNamedOnce) {
  std::set<std::string> names;
  for (const auto maps : {sequential_maps(), diverging_maps()})
    for (const auto& map : maps) {
      EXPECT_TRUE(names.insert(map.name).second) << map.name;
      for (const bool dark : {true, false}) {
        const auto all = stops(map.map, dark);
        ASSERT_GE(all.size(), 2u);
        ASSERT_LE(all.size(), 13u);
        const Rgb zero = is_diverging(map.map) ? all[all.size() / 2] : all.front();
        const int sum = zero.r + zero.g + zero.b;
        EXPECT_TRUE(dark ? sum < 160 : sum > 680) << map.name << ": 0 sinks into the ground";
      }
    }
  EXPECT_THAT(names,
              testing::IsSupersetOf({"viridis", "magma", "cividis", "greys", "blue-orange", "red-blue"}));
}

using Lab = std::array<double, 3>;

double linear(std::uint8_t channel) {
  const double c = channel / 255.0;
  return c > 0.04045 ? std::pow((c + 0.055) / 1.055, 2.4) : c / 12.92;
}

double luminance(Rgb c) {
  return 0.2126 * linear(c.r) + 0.7152 * linear(c.g) + 0.0722 * linear(c.b);
}

/// Converts an sRGB color to CIE 1976 L*a*b*, white D65.
Lab lab_of(Rgb c) {
  const double r = linear(c.r), g = linear(c.g), b = linear(c.b);
  const auto f = [](double t) { return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116; };
  const double x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047), y = f(luminance(c)),
               z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

TEST(Palette, ThirtyTwoHeadsAreToldApartAndFromTheGround) {
  constexpr double told_apart = 20;  // a just noticeable difference is 2.3
  for (const bool dark : {false, true}) {
    const Palette& p = palette(dark);
    const double background = luminance(p.background.back);
    for (std::size_t a = 0; a < 32; ++a) {
      const double own = luminance(p.head(a));
      EXPECT_GE((std::max(own, background) + 0.05) / (std::min(own, background) + 0.05), 3) << a;
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
