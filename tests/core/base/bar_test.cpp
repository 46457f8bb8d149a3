#include "core/base/bar.hpp"

#include <gtest/gtest.h>

#include <array>

namespace core::colour {
namespace {

TEST(ColourBar, IsStraightWithoutALogarithm) {
  const Shading s{ColourMap::weights, 0, 4};
  EXPECT_EQ(share_of_bar(s, 1), 0.25);
  EXPECT_EQ(share_of_bar(s, 9), 1);
  EXPECT_EQ(number_on_bar(s, 0.75), 3);
}

TEST(ColourBar, TakesEqualStepsForEqualRatiosOnALogarithm) {
  const Shading s{ColourMap::weights, 0, 1, 1e-4};
  EXPECT_NEAR(share_of_bar(s, 1e-2), 0.5, 1e-12);
  EXPECT_EQ(share_of_bar(s, 0), 0);
  EXPECT_NEAR(number_on_bar(s, 0.25), 1e-3, 1e-15);
}

TEST(ColourBar, HasASideForEachSign) {
  const Shading s{ColourMap::values, -10, 10, 0.1};
  EXPECT_NEAR(share_of_bar(s, -1), 0.25, 1e-12);
  EXPECT_NEAR(number_on_bar(s, 0.75), 1, 1e-12);
}

TEST(ColourBar, OfARangeWithoutExtentIsItsMiddle) {
  EXPECT_EQ(share_of_bar({ColourMap::values, 0, 0}, 0), 0.5);
}

TEST(ColourBar, GivesBackWhereANumberStands) {
  for (const Shading& s :
       std::array{Shading{ColourMap::values, -3, 7}, Shading{ColourMap::values, -5, 5, 0.01},
                  Shading{ColourMap::weights, 0, 2, 0.5}, Shading{ColourMap::values, -8, -2, 2}})
    for (const double share : {0.0, 0.2, 0.7, 1.0})
      EXPECT_NEAR(share_of_bar(s, number_on_bar(s, share)), share, 1e-12) << s.low << " " << share;
}

}  // namespace
}  // namespace core::colour
