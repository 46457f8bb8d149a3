// A value that takes longer than a frame: what the window's thread finds meanwhile.
#include "app/session/jobs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "core/base/error.hpp"

namespace app {
namespace {

struct Question {
  int shape = 0, number = 0;
  bool is_near(const Question& other) const { return shape == other.shape; }
  friend bool operator==(const Question&, const Question&) = default;
};

struct AValueInItsSlot : testing::Test {
  std::promise<void> may_end;
  std::shared_future<void> end = may_end.get_future().share();
  std::atomic<bool> was_given_up = false;
  std::atomic<int> begun = 0;
  std::vector<std::string> said;
  Jobs jobs;
  AsyncValue<Question, int> answers{jobs};

  void SetUp() override {
    jobs.fail_by([this](const Failure& failure) { said.push_back(failure.words); });
  }

  /// Asks as a frame does.
  void ask(const Question& q) {
    if (answers.needs(q))
      answers.begin(q, When::background, [this, q](const core::Token& token) {
        ++begun;
        begun.notify_all();
        end.wait();
        if (!token.goes_on()) was_given_up = true;
        return q.number;
      });
  }
};

TEST_F(AValueInItsSlot, WhatFailsAtOnceIsNotTriedAgain) {
  answers.begin({1, 1}, When::at_once, [](const auto&) { return 1; });
  int tried = 0;
  for (int frame = 0; frame < 10; ++frame) {
    if (!answers.needs({1, 2}, When::at_once)) continue;
    EXPECT_THROW(answers.begin({1, 2}, When::at_once,
                               [&](const auto&) -> int {
                                 ++tried;
                                 throw core::Error("no chalk");
                               }),
                 core::Error);
  }
  EXPECT_EQ(tried, 1);
  EXPECT_EQ(*answers.value(), 1);
  EXPECT_FALSE(answers.is_busy());
  EXPECT_TRUE(answers.needs({1, 3}, When::at_once)) << "another one is";
  answers.begin({1, 3}, When::at_once, [](const auto&) { return 3; });
  EXPECT_EQ(*answers.value(), 3);
}

TEST_F(AValueInItsSlot, TheLastAnswerStaysUntilTheNextIsThere) {
  answers.begin({1, 1}, When::at_once, [](const auto&) { return 1; });
  ask({1, 2});
  ASSERT_NE(answers.value(), nullptr);
  EXPECT_EQ(*answers.value(), 1);
  EXPECT_FALSE(answers.is_of({1, 2}));
  EXPECT_TRUE(answers.is_busy());
  may_end.set_value();
  jobs.finish();
  ask({1, 2});
  EXPECT_EQ(*answers.value(), 2);
  EXPECT_FALSE(answers.is_busy());
}

TEST_F(AValueInItsSlot, OfManyQuestionsOnlyTheFirstAndTheNewestAreWorkedOut) {
  for (int number = 1; number <= 20; ++number) ask({1, number});
  begun.wait(0);
  EXPECT_EQ(begun, 1);
  may_end.set_value();
  jobs.finish();
  EXPECT_EQ(*answers.value(), 1) << "a drag is seen to move";
  ask({1, 20});
  jobs.finish();
  EXPECT_EQ(*answers.value(), 20);
  EXPECT_FALSE(was_given_up);
}

TEST_F(AValueInItsSlot, WhatIsOfNoUseAnyMoreIsGivenUp) {
  ask({1, 1});
  begun.wait(0);
  ask({2, 1});
  may_end.set_value();
  jobs.finish();
  ask({2, 1});
  EXPECT_TRUE(was_given_up);
  EXPECT_EQ(answers.key()->shape, 2);
}

TEST_F(AValueInItsSlot, WhatFailedIsSaidOnceAndNotTriedAgain) {
  int tried = 0;
  const auto fail = [&] {
    if (answers.needs({1, 1})) {
      ++tried;
      answers.begin({1, 1}, When::background, [](const auto&) -> int { throw core::Error("no"); });
    }
  };
  fail();
  jobs.finish();
  EXPECT_THAT(said, testing::ElementsAre("no"));
  for (int frame = 0; frame < 3; ++frame) fail();
  EXPECT_EQ(tried, 1);
}

TEST_F(AValueInItsSlot, IsNotBegunForAKeyThatIsSeenInOneFrameOnly) {
  for (int number = 1; number <= 20; ++number) {  // a drag
    EXPECT_FALSE(answers.needs({1, number}, When::when_still));
    EXPECT_FALSE(answers.needs({1, number}, When::when_still)) << "asked for twice in a frame";
    EXPECT_TRUE(answers.is_busy()) << "the next frame begins it";
    jobs.deliver();
  }
  EXPECT_TRUE(answers.needs({1, 20}, When::when_still));
}

TEST_F(AValueInItsSlot, IsBegunAnewAfterWhatItReadWasRecalled) {
  const auto recalled = std::make_shared<std::atomic<bool>>(false);
  const auto begin = [&] {
    answers.begin(
        {1, 1}, When::background, [&](const core::Token&) { return end.wait(), 5; }, recalled);
  };
  ASSERT_TRUE(answers.needs({1, 1}));
  begin();
  *recalled = true;
  may_end.set_value();
  jobs.finish();
  EXPECT_EQ(answers.value(), nullptr) << "what it gave may be half of it";
  EXPECT_TRUE(said.empty());
  *recalled = false;
  ASSERT_TRUE(answers.needs({1, 1}));
  begin();
  jobs.finish();
  ASSERT_NE(answers.value(), nullptr);
  EXPECT_EQ(*answers.value(), 5);
}

}  // namespace
}  // namespace app
