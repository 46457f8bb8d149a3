#include "core/base/color.hpp"

#include <gtest/gtest.h>

#include <array>

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

}  // namespace
}  // namespace core::color
