#include "app/writing.hpp"

#include <gtest/gtest.h>

#include <future>

namespace app {
namespace {

using core::formats::Cancelled;
using core::formats::Progress;

struct WritingBesideTheWindow : testing::Test {
  std::vector<std::string> written, said;

  Writing::Write write(const std::string& name, std::shared_future<void> may_end) {
    return [this, name, may_end](Progress& progress) -> Worker::Delivery {
      may_end.wait();
      progress.add(1);
      written.push_back(name);  // one writes at a time
      return [this, name] { said.push_back(name); };
    };
  }
};

TEST_F(WritingBesideTheWindow, HoldsNobodyUpAndKeepsTheOrder) {
  Writing writing;
  std::promise<void> may_end;
  const auto end = may_end.get_future().share();
  for (const char* name : {"a", "b", "c"}) writing.add(name, write(name, end));
  writing.go_on();
  EXPECT_TRUE(writing.is_busy());
  EXPECT_TRUE(said.empty());
  EXPECT_EQ(writing.path(), "a");
  may_end.set_value();
  while (writing.is_busy()) writing.wait(), writing.go_on();
  EXPECT_EQ(said, (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(WritingBesideTheWindow, IsStoppedAtItsNextStepAndGoesOnWithTheNext) {
  Writing writing;
  std::promise<void> may_end;
  const auto end = may_end.get_future().share();
  for (const char* name : {"a", "b"}) writing.add(name, write(name, end));
  writing.stop();
  may_end.set_value();
  writing.wait();
  EXPECT_THROW(writing.go_on(), Cancelled);
  while (writing.is_busy()) writing.wait(), writing.go_on();
  EXPECT_EQ(written, (std::vector<std::string>{"b"}));
}

TEST_F(WritingBesideTheWindow, LosesNothingWhenItEnds) {
  std::promise<void> may_end;
  const auto end = may_end.get_future().share();
  {
    Writing writing;
    for (const char* name : {"a", "b", "c"}) writing.add(name, write(name, end));
    may_end.set_value();
  }
  EXPECT_EQ(written, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(said.empty());
}

}  // namespace
}  // namespace app
