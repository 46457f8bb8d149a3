// Large models: computed in the background, never displayed half-finished.
#include "app/session/live_trace.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <new>

#include "app/session/picture_source.hpp"
#include "app/session/statistics.hpp"
#include "core/editing/presets.hpp"
#include "core/files/session.hpp"
#include "core/graph/attend.hpp"
#include "core/out/export.hpp"
#include "core/out/tables.hpp"
#include "tests/support/look.hpp"
#include "tests/support/program.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/waiting.hpp"

namespace app {
namespace {

using core::attention::Model;
using core::attention::Trace;

constexpr double nothing = 0;  // milliseconds allowed in the window's thread

Model large_model() {
  support::Random random(11);
  return support::model(random, 420, 16, 16, 8);
}

Model small_model() {
  support::Random random(12);
  return support::model(random, 5, 4, 4, 2);
}

bool same_numbers(const Trace& a, const Trace& b) {
  const auto same = [](const arma::mat& x, const arma::mat& y) {
    return arma::size(x) == arma::size(y) && arma::approx_equal(x, y, "both", 1e-12, 1e-10);
  };
  return a.n_heads() == b.n_heads() &&
         same(a.at(core::attention::Stage::output), b.at(core::attention::Stage::output)) &&
         same(a.at(core::attention::Stage::weights, a.n_heads() - 1),
              b.at(core::attention::Stage::weights, a.n_heads() - 1));
}

Model scaled(Model model, double factor) {
  model.scale = {core::attention::ScaleRule::factor, factor};
  return model;
}

TEST(LiveTrace, OfALargeModelLeavesTheLastOneUntilItIsComplete) {
  Jobs jobs;
  LiveTrace live(jobs, small_model(), nothing);
  const auto version = live.version();
  live.follow(large_model(), 0);
  EXPECT_TRUE(live.is_behind());
  EXPECT_EQ(live.version(), version);
  EXPECT_EQ(live.model(), small_model());
  EXPECT_EQ(live.trace().at(core::attention::Stage::output).n_rows(), 5u);
  support::catch_up(jobs, live, large_model());
  EXPECT_FALSE(live.is_behind());
  EXPECT_GT(live.version(), version);
  EXPECT_EQ(live.model(), large_model());
  EXPECT_TRUE(same_numbers(live.trace(), core::attention::attend(large_model())));
}

TEST(LiveTrace, ShowsOfADragOnlyStatesThatWereAskedForAndTheLastInTheEnd) {
  const Model start = large_model();
  Jobs jobs;
  LiveTrace live(jobs, start, nothing);
  for (int k = 1; k <= 6; ++k) {
    live.follow(scaled(start, k), 0);
    const bool begun = live.model() == start;
    ASSERT_TRUE(begun || (live.model().scale.factor >= 1 && live.model().scale.factor <= k));
    ASSERT_TRUE(same_numbers(live.trace(), core::attention::attend(live.model())));
  }
  support::catch_up(jobs, live, scaled(start, 6));
  EXPECT_EQ(live.model().scale.factor, 6);
  EXPECT_TRUE(same_numbers(live.trace(), core::attention::attend(scaled(start, 6))));
}

TEST(LiveTrace, ForgetsWhatIsUnderWayWhenTheModelIsAgainTheShownOne) {
  const Model start = large_model();
  Jobs jobs;
  LiveTrace live(jobs, start, nothing);
  const auto version = live.version();
  live.follow(scaled(start, 2), 0);
  ASSERT_TRUE(live.is_behind());
  live.follow(start, 0);
  EXPECT_FALSE(live.is_behind());
  support::catch_up(jobs, live, start);
  EXPECT_EQ(live.version(), version);
}

TEST(LiveTrace, OfASmallModelIsThereAtOnceAndOvertakesALargeOne) {
  Jobs jobs;
  LiveTrace live(jobs, small_model(), nothing);
  live.follow(large_model(), 0);
  live.follow(scaled(small_model(), 3), 0);
  EXPECT_FALSE(live.is_behind());
  EXPECT_EQ(live.model(), scaled(small_model(), 3));
  EXPECT_TRUE(same_numbers(live.trace(), core::attention::attend(scaled(small_model(), 3))));
  support::catch_up(jobs, live, scaled(small_model(), 3));
  EXPECT_EQ(live.model(), scaled(small_model(), 3));
}

TEST(LiveTrace, OfAnEditedLargeModelIsUpdatedInPlaceWhenThatIsQuick) {
  Model model = large_model();
  Jobs jobs;
  LiveTrace live(jobs, model, 1e9);
  const Trace* const trace = &live.trace();
  for (int k = 1; k <= 3; ++k) {
    model = core::editing::apply(
        model, core::editing::SetCell{{core::editing::MatrixName::embeddings, 0}, 100, 2, 0.5 * k});
    const auto version = live.version();
    live.follow(model, 0);
    EXPECT_FALSE(live.is_behind());
    EXPECT_EQ(live.version(), version + 1);
    EXPECT_TRUE(same_numbers(live.trace(), core::attention::attend(model))) << k;
  }
  EXPECT_EQ(&live.trace(), trace);
}

TEST(LiveTrace, OfALargeModelGoesToFloat32AndBackAndIsEditedInBoth) {
  Jobs jobs;
  Model model = scaled(large_model(), 0.01);
  LiveTrace live(jobs, model, 1e9);
  const Trace* const trace = &live.trace();
  using core::attention::Precision;
  for (const Precision precision : {Precision::float32, Precision::float64, Precision::float32}) {
    model.arithmetic.precision = precision;
    for (int k = 0; k < 3; ++k) {
      live.follow(model, 0);
      EXPECT_TRUE(live.matches(model, 0));
      EXPECT_EQ(&live.trace(), trace);
      EXPECT_TRUE(live.rows(core::attention::Stage::weights, 7));
      const Trace expected = core::attention::attend(model);
      const bool is_float64 = precision == Precision::float64;
      for (std::size_t h = 0; h < 8; ++h)
        EXPECT_TRUE(arma::approx_equal(*live.trace().at(core::attention::Stage::weights, h),
                                       *expected.at(core::attention::Stage::weights, h), "absdiff",
                                       is_float64 ? 1e-12 : 1e-6));
      EXPECT_EQ(same_numbers(live.trace(), expected), is_float64);
      model.sequences[0].embeddings.set(17, 3, 0.25 * k);
    }
  }
}

TEST(LiveTrace, ChangesNothingInPlaceThatSomebodyReads) {
  Model model = large_model();
  Jobs jobs;
  LiveTrace live(jobs, model, 1e9);
  const ReadLock lock = live.read_lock();
  const auto& read = lock.trace;
  const arma::mat before = read->at(core::attention::Stage::output);
  model = scaled(model, 2);
  support::catch_up(jobs, live, model);
  EXPECT_EQ(live.model(), model);
  EXPECT_TRUE(arma::approx_equal(*read->at(core::attention::Stage::output), before, "absdiff", 0));
  EXPECT_TRUE(same_numbers(live.trace(), core::attention::attend(model)));
}

TEST(LiveTrace, CountsTheNumbersThatDropoutDraws) {
  support::Random random(81);
  Model model = support::model(random, 640, 8, 8, 8);
  model.dropout.rate = 0.5;
  core::attention::fast::Engine engine;
  engine.compute(model);
  Model off = model, again = model;
  off.dropout.rate = 0;
  ++again.dropout.seed;
  EXPECT_GT(engine.plan(again).ms, engine.plan(off).ms + LiveTrace::frame_ms)
      << "three million numbers are to be drawn";
}

TEST(LiveTrace, ThatCannotBeComputedIsSaidOnceAndTheLastOneStays) {
  Jobs jobs;
  std::vector<std::string> said;
  jobs.set_failure_handler([&](const Failure& failure) { said.push_back(failure.words); });
  std::atomic<bool> is_out_of_memory = false;
  LiveTrace live(jobs, small_model(), nothing, [&] {
    if (is_out_of_memory) throw std::bad_alloc();
  });
  is_out_of_memory = true;
  support::catch_up(jobs, live, large_model());
  for (int frame = 0; frame < 3; ++frame) live.follow(large_model(), 0), jobs.finish();
  EXPECT_EQ(said.size(), 1u);
  EXPECT_FALSE(live.is_behind());
  EXPECT_EQ(live.model(), small_model());
  is_out_of_memory = false;
  support::catch_up(jobs, live, scaled(large_model(), 2));
  EXPECT_EQ(live.model(), scaled(large_model(), 2)) << "another model is tried";
}

struct LargeModel : testing::Test {
  gui::Program ui{{1600, 1000}, nothing};
  void SetUp() override {
    support::TemporaryDirectory directory;
    core::formats::save_session(directory.path() / "large.json", {large_model(), ""});
    ui.store.open(directory.path() / "large.json");
  }
  void wait() {
    const auto is_under_way = [&] {
      return ui.store.live().is_behind() || ui.is_working() || ui.has("status/renewal");
    };
    for (int frame = 0; frame < 2000 && is_under_way(); ++frame) ui.run(1);
    ui.run();
  }
};

TEST_F(LargeModel, IsEditedWhileThePicturesAreStillOfTheLastOne) {
  ASSERT_TRUE(ui.store.live().is_behind());
  ui.run();
  wait();
  const Model before = ui.store.model();
  ui.store.dispatch(ApplyEdit{core::editing::SetScale{{core::attention::ScaleRule::factor, 0.5}}});
  ui.store.update();
  EXPECT_TRUE(ui.store.live().is_behind());
  EXPECT_EQ(ui.store.live().model(), before);
  ui.edit(core::editing::SetCell{{core::editing::MatrixName::embeddings, 0}, 3, 1, 0.75});
  EXPECT_EQ(ui.store.model().scale.factor, 0.5);
  EXPECT_EQ((*ui.store.model().sequences[0].embeddings)(3, 1), 0.75);
  wait();
  EXPECT_EQ(ui.store.live().model(), ui.store.model());
  EXPECT_TRUE(same_numbers(ui.store.live().trace(), core::attention::attend(ui.store.model())));
  ui.store.dispatch(Undo{});
  ui.store.dispatch(Undo{});
  EXPECT_EQ(ui.store.model(), before);
}

TEST_F(LargeModel, MayBeLeftForAnotherShapeWhileItIsComputed) {
  support::look(ui.store, [](View& v) {
    v.look.head = 7, v.selection.pinned = CellRef{Stage::weights, 7, 419, 419};
  });
  EXPECT_EQ(ui.store.view().look.head, 7u);
  EXPECT_LT(ui.store.shown_view().look.head,
            ui.store.live().trace().n_heads());  // the pictures have two heads of six tokens
  EXPECT_FALSE(ui.store.shown_view().selection.pinned);
  ui.run();
  wait();
  EXPECT_EQ(ui.store.shown_view().selection.pinned, (CellRef{Stage::weights, 7, 419, 419}));
  ui.edit(core::editing::SetScale{{core::attention::ScaleRule::none, 1}});
  ui.store.dispatch(LoadPreset{"004-causal"});
  ui.store.dispatch(DiscardAndContinue{});
  ui.run();
  EXPECT_FALSE(ui.store.live().is_behind());
  EXPECT_EQ(ui.store.live().model(), core::editing::find_preset("004-causal")->make());
}

TEST_F(LargeModel, IsExportedAsItIsNowNotAsItIsShown) {
  wait();
  const support::TemporaryDirectory directory;
  const auto path = directory.path() / "w.csv";
  ui.store.dispatch(ApplyEdit{core::editing::SetScale{{core::attention::ScaleRule::factor, 0.25}}});
  const Model shown = ui.store.live().model();
  ui.store.dispatch(ExportAs{ExportFormat::csv, ExportScope::matrix, {Stage::weights, 2, 0, 0}, path});
  EXPECT_EQ(ui.store.live().model(), shown) << "the window's thread waits for no trace";
  support::finish_reading(ui.store);
  core::attention::fast::Engine engine;
  engine.compute(ui.store.model());
  EXPECT_EQ(support::bytes_of(path),
            core::formats::csv_text(core::formats::labeled_stage(
                ui.store.model(), engine.trace(), core::attention::info(Stage::weights), 2, 0)));
}

TEST_F(LargeModel, HasNoRowSumsToPointAtUntilTheyAreWorkedOut) {
  wait();
  support::look(ui.store, [](View& v) { v.look.large = Stage::weights, v.look.gutters = true; });
  ui.run();
  ui.move_to("large/weights/gutter/sum");
  ui.key(Key::bracket_right);
  EXPECT_EQ(ui.store.shown_view().look.head, 1u);
  EXPECT_TRUE(ui.has("large/weights/gutter/sum"));
}

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

/// All background computations at once, while numbers change.
class ManyEdits : public testing::TestWithParam<double> {};

TEST_P(ManyEdits, EndWithTheTraceOfTheLastModel) {
  support::Random random(61);
  Model model = support::model(random, 160, 12, 12, 4);
  Jobs jobs;
  LiveTrace live(jobs, model, GetParam());
  Statistics statistics(jobs);
  PictureSource source(jobs);
  const auto look = [&] {
    jobs.deliver();
    statistics.follow_trace(live);
    source.follow(live);
    const auto tokens = live.model().sequences[0].tokens;
    statistics.heads(live.trace(), live.version(), tokens);
    statistics.similarity(live.trace(), live.version());
    statistics.lines(live.trace(), live.version(), {{0, 1, 2, 3}, 0.01, std::nullopt, 500});
    for (const Stage stage : {Stage::scores, Stage::dropped_weights}) {
      statistics.rows(live.trace(), live.version(), stage, 1);
      source.is_ready(stage, 1);
    }
  };
  for (int edit = 0; edit < 150; ++edit) {
    arma::mat numbers = model.sequences[0].embeddings;
    numbers(support::below(random, numbers.n_rows), support::below(random, numbers.n_cols)) += 0.5;
    model.sequences[0].embeddings = numbers;
    if (edit % 40 == 39) model.mask.causal = !model.mask.causal;
    live.follow(model, 0);
    for (int frame = 0; frame < edit % 4; ++frame) look();  // sometimes no job has time to begin
  }
  support::catch_up(jobs, live, model);
  const core::attention::Trace expected = core::attention::attend(model);
  EXPECT_TRUE(
      arma::approx_equal(*live.trace().at(Stage::output), *expected.at(Stage::output), "both", 1e-12, 1e-10));
  for (std::size_t h = 0; h < 4; ++h)
    EXPECT_TRUE(arma::approx_equal(*live.trace().at(Stage::weights, h), *expected.at(Stage::weights, h),
                                   "both", 1e-12, 1e-10))
        << h;
}

INSTANTIATE_TEST_SUITE_P(AtOnceAndBesideTheWindow, ManyEdits, testing::Values(LiveTrace::frame_ms, 0.0));

}  // namespace
}  // namespace app
