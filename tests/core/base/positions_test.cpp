#include "core/base/positions.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace core::positions {
namespace {

TEST(MeetingOfAQueryAndAKey, TurnsAsThePaperSays) {
  Rotary rotary;
  rotary.base = 100;
  const arma::rowvec query{1, 0, 0, 2}, key{0, 1, 1, 0};
  // Pairs (0, 2) at 1 radian and (1, 3) at 0.1 radian a position; distance 3 − 1.
  const RotaryDot now = rotary_dot(rotary, query, key, 3, 1);
  ASSERT_EQ(now.pairs.size(), 2u);
  EXPECT_EQ(now.pairs[1].columns.second, 3u);
  EXPECT_DOUBLE_EQ(now.pairs[0].query_angle, 3);
  EXPECT_DOUBLE_EQ(now.pairs[1].key_angle, 0.1);
  // q = (1, 0), k = (0, 1): R(3)q · R(1)k = cos(3 − 1 − π/2) = sin(2); q = (0, 2), k = (1, 0): −2·sin(0.2).
  EXPECT_NEAR(now.pairs[0].share, 0.9092974268256817, 1e-15);
  EXPECT_NEAR(now.pairs[1].share, -0.39733866159012243, 1e-15);
  EXPECT_NEAR(now.score, 0.9092974268256817 - 0.39733866159012243, 1e-15);
  EXPECT_EQ(now.unrotated, 0);
}

TEST(MeetingOfAQueryAndAKey, DependsOnTheDistanceAlone) {
  Rotary rotary;
  rotary.dimensions = 4, rotary.pairs = Pairs::neighbours;
  const arma::rowvec query{0.5, -1, 2, 0.25, 3}, key{1, 0.75, -0.5, 2, 0.5};
  const double score = rotary_dot(rotary, query, key, 7, 2).score;
  EXPECT_NEAR(rotary_dot(rotary, query, key, 105, 100).score, score, 1e-12);
  EXPECT_GT(std::fabs(rotary_dot(rotary, query, key, 8, 2).score - score), 0.01);
  EXPECT_EQ(rotary_dot(rotary, query, key, 7, 2).unrotated, 1.5) << "the last column stays";
}

TEST(MeetingOfAQueryAndAKey, OfARotatedRowIsThatOfTheEngine) {
  for (const bool halves : {true, false}) {
    Rotary rotary;
    rotary.pairs = halves ? Pairs::halves : Pairs::neighbours;
    rotary.scaling = {ScalingRule::linear, 2};
    const arma::rowvec query{0.5, -1, 2, 0.25}, key{1, 0.75, -0.5, 2};
    const double score = arma::dot(rotate(arma::mat(query), 5, rotary), rotate(arma::mat(key), 3, rotary));
    EXPECT_NEAR(rotary_dot(rotary, query, key, 5, 3).score, score, 1e-14);
  }
}

/// A quarter of a turn, and back again.
TEST(MeetingOfAQueryAndAKey, LiesBetweenTwoTokensToo) {
  Rotary rotary;
  rotary.base = 1;
  const double quarter = std::acos(-1.0) / 2;
  const RotaryPair pair = rotary_dot(rotary, {3, 4}, {1, 0}, quarter, -quarter).pairs.front();
  EXPECT_NEAR(pair.rotated_query.x, -4, 1e-15);
  EXPECT_NEAR(pair.rotated_query.y, 3, 1e-15);
  EXPECT_NEAR(pair.rotated_key.y, -1, 1e-15);
}

}  // namespace
}  // namespace core::positions
