#include "app/session/live_trace.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace app {
namespace {

TEST(Changes, AreOfNumbersThatDifferByMoreThanRounding) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(differs(1, 1.001));
  EXPECT_FALSE(differs(1, 1 + 1e-15));
  EXPECT_TRUE(differs(-infinity, 0.3)) << "a mask that is gone";
  EXPECT_TRUE(differs(0.3, -infinity));
  EXPECT_TRUE(differs(-infinity, infinity));
  EXPECT_FALSE(differs(-infinity, -infinity));
  EXPECT_TRUE(differs(nan, 1));
  EXPECT_FALSE(differs(nan, nan));
}

}  // namespace
}  // namespace app
