// A comparison and a search that take longer than a frame: state of the window's thread in the meantime.
#include <gmock/gmock.h>

#include "app/session/comparing.hpp"
#include "core/base/error.hpp"
#include "core/files/session.hpp"
#include "core/graph/injected_bugs.hpp"
#include "core/out/export.hpp"
#include "core/system/process.hpp"
#include "tests/support/look.hpp"
#include "tests/support/program.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/waiting.hpp"

namespace app {
namespace {

using core::attention::Model;
using core::attention::Stage;
using core::editing::MatrixName;
using core::editing::SetCell;

/// Model large enough for the engine, with its snapshot as A.
struct LargeComparison : testing::Test {
  support::TemporaryDirectory directory;
  Store store{core::system::available_memory, 1e9};  // the live trace updates at once unless it is being read

  void SetUp() override {
    support::Random random(71);
    Model model = support::model(random, 300, 12, 12, 4);
    model.dropout = {};
    core::formats::save_session(directory.path() / "large.json", {model, ""});
    store.open(directory.path() / "large.json");
    finish();
    store.dispatch(AddReference{});
    support::look(store, [](View& v) { v.look.tab = Tab::compare; });
  }
  void finish() {
    do support::finish_working(store);
    while (store.live().is_behind());
    support::finish_working(store);
  }
  void edit(double number) {
    store.dispatch(ApplyEdit{SetCell{{MatrixName::embeddings, 0}, 1, 2, number}});
    store.update();
  }
};

TEST_F(LargeComparison, IsWorkedOutBesideTheWindow) {
  store.update();
  EXPECT_EQ(store.live_comparison().comparison(), nullptr) << "the window's thread compares nothing";
  EXPECT_TRUE(store.live_comparison().work().is_updating);
  finish();
  ASSERT_NE(store.live_comparison().comparison(), nullptr);
  EXPECT_FALSE(store.live_comparison().work().is_updating);
  EXPECT_EQ(store.live_comparison().comparison()->first, nullptr);
  EXPECT_FALSE(store.live_comparison().comparison()->is_exact);
}

TEST_F(LargeComparison, StaysThatOfTheLastStateUntilTheNextIsComplete) {
  finish();
  const std::uint64_t version = store.live_comparison().comparison()->key.version;
  edit(7);
  ASSERT_NE(store.live_comparison().comparison(), nullptr);
  EXPECT_EQ(store.live_comparison().comparison()->key.version, version);
  EXPECT_TRUE(store.live_comparison().work().is_updating);
  finish();
  EXPECT_EQ(store.live_comparison().comparison()->key.version, store.live().version());
  ASSERT_NE(store.live_comparison().comparison()->first, nullptr);
  EXPECT_EQ(store.live_comparison().comparison()->first->all.stage, Stage::embeddings);
  EXPECT_EQ(store.live_comparison().comparison()->first->numbers_b(1, 2), 7);
}

TEST_F(LargeComparison, FollowsADragToTheLastNumber) {
  finish();
  for (int k = 1; k <= 60; ++k) edit(k);
  finish();
  EXPECT_EQ(store.live().model(), store.model());
  EXPECT_EQ(store.live_comparison().comparison()->first->numbers_b(1, 2), 60);
}

TEST_F(LargeComparison, OfAnotherHeadKnowsAllHeadsAlready) {
  edit(7);
  finish();
  const auto before = store.live_comparison().comparison()->stages.back().all;
  support::look(store, [](View& v) { v.look.head = 3; });
  finish();
  EXPECT_EQ(store.live_comparison().comparison()->key.head, 3u);
  EXPECT_EQ(store.live_comparison().comparison()->stages.back().all.largest, before.largest);
}

TEST_F(LargeComparison, LetsGoOfAllMemoryWhenItIsNotShown) {
  finish();
  support::look(store, [](View& v) { v.look.tab = Tab::stages; });
  store.update();
  EXPECT_EQ(store.live_comparison().comparison(), nullptr);
  EXPECT_EQ(store.live_comparison().snapshot(), nullptr);
}

/// Check of tensors with a deviation, or, for "", with an error that no known deviation explains.
struct LargeCheck : LargeComparison {
  void check(const char* mistake) {
    Model theirs = store.model();
    if (const auto* row = core::bugs::find_offered_bug(mistake)) theirs = injected(*row, theirs);
    if (std::string_view(mistake).empty()) {
      arma::mat numbers = theirs.sequences[0].embeddings;
      numbers(5, 5) += 1;
      theirs.sequences[0].embeddings = numbers;
    }
    core::formats::export_stages(theirs, directory.path() / "theirs", {.stages = {"weights"}});
    support::carry_out(store, CheckTensors{directory.path() / "theirs"});
  }
};

TEST_F(LargeCheck, IsMadeBesideTheWindow) {
  check("no_scale");
  store.update();
  EXPECT_EQ(store.live_comparison().comparison(), nullptr) << "the window's thread checks nothing";
  EXPECT_TRUE(store.live_comparison().work().is_updating);
  finish();
  ASSERT_NE(store.live_comparison().comparison(), nullptr);
  EXPECT_THAT(store.live_comparison().comparison()->tensors->report.causes(),
              testing::ElementsAre("no_scale"));
  EXPECT_TRUE(store.live_comparison().comparison()->tensors->searched);
}

TEST_F(LargeCheck, CanBeStoppedAndBegunAgain) {
  check("");
  while (!store.live_comparison().work().is_searching) store.update();
  store.dispatch(StopSearch{});
  finish();
  EXPECT_FALSE(store.live_comparison().work().is_searching);
  EXPECT_FALSE(store.live_comparison().comparison()->tensors->searched);
  EXPECT_NE(store.live_comparison().comparison()->first, nullptr) << "what differs is known without a search";
  store.dispatch(SearchCauses{});
  store.update();
  EXPECT_TRUE(store.live_comparison().work().is_searching);
  finish();
  EXPECT_TRUE(store.live_comparison().comparison()->tensors->searched);
  EXPECT_TRUE(store.live_comparison().comparison()->tensors->report.explanations.empty());
}

TEST_F(LargeCheck, OfAnOutdatedModelIsGivenUp) {
  check("");
  while (!store.live_comparison().work().is_searching) store.update();
  edit(7);
  finish();
  EXPECT_FALSE(store.live_comparison().comparison()->tensors->searched)
      << "the search was for the model before";
  EXPECT_EQ(store.live_comparison().comparison()->key.version, store.live().version());
}

}  // namespace
}  // namespace app
