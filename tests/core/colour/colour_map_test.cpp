#include "core/colour/colour_map.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using core::colour::rgb;
using core::colour::colour_at;
using core::colour::ColourMap;
using core::colour::place_in_range;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(ColourMap, HasTheThemesColoursAtItsEndsAndItsMiddle) {
  EXPECT_EQ(colour_at(ColourMap::weights, true, 0), rgb(0x1b1a2b));
  EXPECT_EQ(colour_at(ColourMap::weights, true, 0.5), rgb(0x24868e));
  EXPECT_EQ(colour_at(ColourMap::weights, true, 1), rgb(0xfde725));
  EXPECT_EQ(colour_at(ColourMap::weights, false, 0.1), rgb(0xe6ecb4));
  EXPECT_EQ(colour_at(ColourMap::values, true, 0), rgb(0x93c6f7));
  EXPECT_EQ(colour_at(ColourMap::values, true, 0.5), rgb(0x22262b));
  EXPECT_EQ(colour_at(ColourMap::values, true, 0.6), rgb(0x46331f));
  EXPECT_EQ(colour_at(ColourMap::values, false, 0.5), rgb(0xeef0f2));
  EXPECT_EQ(colour_at(ColourMap::values, false, 1), rgb(0x7d3b05));
  EXPECT_EQ(colour_at(ColourMap::mask, true, 1), rgb(0x59626d));
  EXPECT_EQ(colour_at(ColourMap::mask, false, 0), rgb(0xf1f2f4));
}

TEST(ColourMap, IsLinearBetweenTwoStops) {
  // Halfway from #1b1a2b to #2f2152.
  EXPECT_EQ(colour_at(ColourMap::weights, true, 0.05), (core::colour::Rgb{0x25, 0x1e, 0x3f}));
}

TEST(ColourMap, IsClampedOutsideTheRange) {
  EXPECT_EQ(colour_at(ColourMap::weights, true, -3), colour_at(ColourMap::weights, true, 0));
  EXPECT_EQ(colour_at(ColourMap::weights, true, 3), colour_at(ColourMap::weights, true, 1));
  EXPECT_EQ(colour_at(ColourMap::weights, true, std::nan("")), colour_at(ColourMap::weights, true, 0));
}

TEST(PlaceInRange, IsTheShareOfTheRangeBelowANumber) {
  EXPECT_DOUBLE_EQ(place_in_range(ColourMap::values, -2, 2, 1), 0.75);
  EXPECT_EQ(place_in_range(ColourMap::values, -2, 2, 5), 1);
  EXPECT_EQ(place_in_range(ColourMap::values, -2, 2, -infinity), 0);
}

TEST(PlaceInRange, OfARangeWithoutExtentIsWhereZeroIsDrawn) {
  EXPECT_EQ(place_in_range(ColourMap::values, 0, 0, 0), 0.5);
  EXPECT_EQ(place_in_range(ColourMap::weights, 0, 0, 0), 0);
}

TEST(PlaceInRange, SurvivesTheLargestRange) {
  const double largest = std::numeric_limits<double>::max();
  EXPECT_EQ(place_in_range(ColourMap::values, -largest, largest, 0), 0.5);
  EXPECT_EQ(place_in_range(ColourMap::values, -largest, largest, largest), 1);
}

}  // namespace
