#include "core/base/token.hpp"

#include <gtest/gtest.h>

namespace core {
namespace {

using Clock = std::chrono::steady_clock;

struct PausingWork : testing::Test {
  StopToken token;
  static int& n_pauses() {
    static int n = 0;
    return n;
  }
  void SetUp() override {
    n_pauses() = 0;
    token.begin_piece(Clock::now(), [] {
      ++n_pauses();
      return Clock::now() + std::chrono::hours(1);
    });
  }
};

TEST_F(PausingWork, PausesWhenItAsksAfterItsTimeAndOnlyThen) {
  EXPECT_TRUE(token.is_due());
  EXPECT_FALSE(token.is_stopped());
  EXPECT_EQ(n_pauses(), 0) << "others may ask whether it is stopped";
  EXPECT_TRUE(token.should_continue());
  EXPECT_EQ(n_pauses(), 1);
  EXPECT_FALSE(token.is_due()) << "its next piece has begun";
  token.add(1);
  EXPECT_EQ(n_pauses(), 1);
}

TEST_F(PausingWork, KeepsItsStackWhileItHoldsALock) {
  {
    const auto no_pause = token.without_pause();
    token.add(1);
    EXPECT_EQ(n_pauses(), 0);
  }
  token.add(1);
  EXPECT_EQ(n_pauses(), 1);
  token.stop();
  EXPECT_THROW(token.add(1), Stopped);
}

}  // namespace
}  // namespace core
