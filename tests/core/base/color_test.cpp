#include "core/base/color.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string>

namespace core::color {
namespace {

TEST(ColorBar, IsStraightWithoutALogarithm) {
  const Shading s{ColorMap::weights, 0, 4};
  EXPECT_EQ(share_of_bar(s, 1), 0.25);
  EXPECT_EQ(share_of_bar(s, 9), 1);
  EXPECT_EQ(number_on_bar(s, 0.75), 3);
}

TEST(ColorBar, TakesEqualStepsForEqualRatiosOnALogarithm) {
  const Shading s{ColorMap::weights, 0, 1, 1e-4};
  EXPECT_NEAR(share_of_bar(s, 1e-2), 0.5, 1e-12);
  EXPECT_EQ(share_of_bar(s, 0), 0);
  EXPECT_NEAR(number_on_bar(s, 0.25), 1e-3, 1e-15);
}

TEST(ColorBar, HasASideForEachSign) {
  const Shading s{ColorMap::values, -10, 10, 0.1};
  EXPECT_NEAR(share_of_bar(s, -1), 0.25, 1e-12);
  EXPECT_NEAR(number_on_bar(s, 0.75), 1, 1e-12);
}

TEST(ColorBar, OfARangeWithoutExtentIsItsMiddle) {
  EXPECT_EQ(share_of_bar({ColorMap::values, 0, 0}, 0), 0.5);
}

TEST(ColorBar, GivesBackWhereANumberStands) {
  for (const Shading& s :
       std::array{Shading{ColorMap::values, -3, 7}, Shading{ColorMap::values, -5, 5, 0.01},
                  Shading{ColorMap::weights, 0, 2, 0.5}, Shading{ColorMap::values, -8, -2, 2}})
    for (const double share : {0.0, 0.2, 0.7, 1.0})
      EXPECT_NEAR(share_of_bar(s, number_on_bar(s, share)), share, 1e-12) << s.low << " " << share;
}

using testing::ElementsAre;

const arma::mat numbers{{1, -3, 0, 2, 0}, {0, 2, 0, 0, 4}, {5, 0, 0, 0, 0}};
constexpr Blocks by_two_down{0, 2, 2}, by_two_across{0, 3, 2};

TEST(Pooled, IsTheLargestNumberOfEachBlock) {
  EXPECT_THAT(pooled(ColorMap::weights, numbers, by_two_down, by_two_across), ElementsAre(2, 2, 4, 5, 0, 0));
}

TEST(Pooled, IsTheNumberFarthestFromZeroInASignedMap) {
  EXPECT_THAT(pooled(ColorMap::values, numbers, by_two_down, by_two_across), ElementsAre(-3, 2, 4, 5, 0, 0));
}

TEST(Pooled, IsTheMeanInAMask) {
  EXPECT_THAT(pooled(ColorMap::mask, numbers, by_two_down, by_two_across), ElementsAre(0, 0.5, 2, 2.5, 0, 0));
  EXPECT_THAT(pooled(ColorMap::mask, numbers, {1, 2, 2}, {1, 3, 2}), ElementsAre(0, 0)) << "a part of it";
}

}  // namespace
}  // namespace core::color

using core::color::color_at;
using core::color::ColorMap;
using core::color::place_in_range;
using core::color::rgb;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(ColorMap, HasTheThemesColorsAtItsEndsAndItsMiddle) {
  EXPECT_EQ(color_at(ColorMap::weights, true, 0), rgb(0x1b1a2b));
  EXPECT_EQ(color_at(ColorMap::weights, true, 0.5), rgb(0x24868e));
  EXPECT_EQ(color_at(ColorMap::weights, true, 1), rgb(0xfde725));
  EXPECT_EQ(color_at(ColorMap::weights, false, 0.1), rgb(0xe6ecb4));
  EXPECT_EQ(color_at(ColorMap::values, true, 0), rgb(0x93c6f7));
  EXPECT_EQ(color_at(ColorMap::values, true, 0.5), rgb(0x22262b));
  EXPECT_EQ(color_at(ColorMap::values, true, 0.6), rgb(0x46331f));
  EXPECT_EQ(color_at(ColorMap::values, false, 0.5), rgb(0xeef0f2));
  EXPECT_EQ(color_at(ColorMap::values, false, 1), rgb(0x7d3b05));
  EXPECT_EQ(color_at(ColorMap::mask, true, 1), rgb(0x59626d));
  EXPECT_EQ(color_at(ColorMap::mask, false, 0), rgb(0xf1f2f4));
}

TEST(ColorMap, IsLinearBetweenTwoStops) {
  // Halfway from #1b1a2b to #2f2152.
  EXPECT_EQ(color_at(ColorMap::weights, true, 0.05), (core::color::Rgb{0x25, 0x1e, 0x3f}));
}

TEST(ColorMap, IsClampedOutsideTheRange) {
  EXPECT_EQ(color_at(ColorMap::weights, true, -3), color_at(ColorMap::weights, true, 0));
  EXPECT_EQ(color_at(ColorMap::weights, true, 3), color_at(ColorMap::weights, true, 1));
  EXPECT_EQ(color_at(ColorMap::weights, true, std::nan("")), color_at(ColorMap::weights, true, 0));
}

TEST(PlaceInRange, IsTheShareOfTheRangeBelowANumber) {
  EXPECT_DOUBLE_EQ(place_in_range(ColorMap::values, -2, 2, 1), 0.75);
  EXPECT_EQ(place_in_range(ColorMap::values, -2, 2, 5), 1);
  EXPECT_EQ(place_in_range(ColorMap::values, -2, 2, -infinity), 0);
}

TEST(PlaceInRange, OfARangeWithoutExtentIsWhereZeroIsDrawn) {
  EXPECT_EQ(place_in_range(ColorMap::values, 0, 0, 0), 0.5);
  EXPECT_EQ(place_in_range(ColorMap::weights, 0, 0, 0), 0);
}

TEST(PlaceInRange, SurvivesTheLargestRange) {
  const double largest = std::numeric_limits<double>::max();
  EXPECT_EQ(place_in_range(ColorMap::values, -largest, largest, 0), 0.5);
  EXPECT_EQ(place_in_range(ColorMap::values, -largest, largest, largest), 1);
}

TEST(PlaceInRange, OfADivergingMapHasZeroInTheMiddleWhateverTheEnds) {
  for (const ColorMap map : {ColorMap::values, ColorMap::red_blue}) {
    EXPECT_EQ(place_in_range(map, -1, 4, 0), 0.5);
    EXPECT_EQ(place_in_range(map, -1, 4, 4), 1);
    EXPECT_EQ(place_in_range(map, -1, 4, -1), 0.375) << "both signs have one measure";
    EXPECT_EQ(place_in_range(map, 2, 4, 3), 0.75) << "a range of one sign has half of the map";
    EXPECT_EQ(place_in_range(map, -4, -2, -4), 0);
  }
}

TEST(PlaceInRange, OnALogarithmicMeasureGivesEqualStepsToEqualRatios) {
  const auto place = [](double v) { return place_in_range(ColorMap::weights, 0, 1, v, 0.001); };
  EXPECT_NEAR(place(1) - place(0.1), place(0.1) - place(0.01), 1e-12);
  EXPECT_EQ(place(1), 1);
  EXPECT_EQ(place(0), 0);
  EXPECT_EQ(place(0.0009), 0) << "smaller than the least";
  EXPECT_GT(place(0.001), 0.05) << "the least itself is told apart from 0";
}

TEST(PlaceInRange, OnALogarithmicMeasureIsEvenInBothSigns) {
  const auto place = [](double v) { return place_in_range(ColorMap::values, -8, 8, v, 0.5); };
  EXPECT_EQ(place(0), 0.5);
  EXPECT_NEAR(place(3) + place(-3), 1, 1e-12);
  EXPECT_EQ(place(-8), 0);
}

TEST(ColorMaps, AllStartInTheGroundAndAreNamedOnce) {
  std::set<std::string> names;
  for (const auto maps : {core::color::sequential_maps(), core::color::diverging_maps()})
    for (const auto& map : maps) {
      EXPECT_TRUE(names.insert(map.name).second) << map.name;
      for (const bool dark : {true, false}) {
        const auto all = core::color::stops(map.map, dark);
        ASSERT_GE(all.size(), 2u);
        ASSERT_LE(all.size(), 13u);
        const core::color::Rgb zero = is_diverging(map.map) ? all[all.size() / 2] : all.front();
        const int sum = zero.r + zero.g + zero.b;
        EXPECT_TRUE(dark ? sum < 160 : sum > 680) << map.name << ": 0 sinks into the ground";
      }
    }
  EXPECT_THAT(names,
              testing::IsSupersetOf({"viridis", "magma", "cividis", "greys", "blue-orange", "red-blue"}));
}

}  // namespace

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
