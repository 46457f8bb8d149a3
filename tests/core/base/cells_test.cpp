#include "core/base/color.hpp"

#include <gmock/gmock.h>

#include <limits>

namespace core::color {
namespace {

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
