#include "core/base/color.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>

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
