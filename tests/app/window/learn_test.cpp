// Learn: a run of training in the window, by mouse and keyboard.
#include <gmock/gmock.h>
#include <ctime>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "app/session/learning.hpp"
#include "core/files/json.hpp"
#include "core/system/file.hpp"
#include "tests/support/look.hpp"
#include "tests/support/settled_window.hpp"
#include "tests/support/temporary_directory.hpp"

namespace {

using app::Key;
using app::Tab;
using core::training::TrainingSetup;
using testing::HasSubstr;

struct Learn : support::SettledWindow {
  Learn() : SettledWindow({1280, 800}) {}
  void begin(
      const std::string& task, const std::function<void(TrainingSetup&)>& change = [](auto&) {}) {
    TrainingSetup setup = core::training::find_task(task)->setup;
    change(setup);
    dispatch(app::SetLearning{task, "", setup});
  }
  void step(std::size_t n) { dispatch(app::StepLearning{n}); }
  const app::Learning& learning() const { return ui.store.learning(); }
  const core::training::TrainingRun& run() const { return *learning().run(); }
  const app::LearningLook& look() const { return ui.store.view().learning; }
};

TEST_F(Learn, IsTheFourthDoor) {
  ui.store.dispatch(app::set<&app::Forms::start_page>(true));
  settle();
  ASSERT_TRUE(ui.store.start_run()) << "the picture of the door";
  EXPECT_EQ(ui.store.start_run()->heads.size(), 3u);
  ui.type("4");
  settle();
  EXPECT_FALSE(ui.store.view().forms.start_page);
  EXPECT_EQ(ui.store.view().look.tab, Tab::learn);
  EXPECT_EQ(learning().task(), "induction");
  EXPECT_EQ(run().n_steps(), 0u);
  for (const char* part :
       {"learn/0.0", "learn/1.1", "learn/loss", "learn/accuracy", "learn/timeline", "learn/play"})
    EXPECT_TRUE(ui.has(part)) << part;
}

TEST_F(Learn, PlaysUntilItIsPaused) {
  begin("previous-token");
  ui.key(Key::space);
  ASSERT_TRUE(look().plays);
  for (int k = 0; k < 3000 && run().milestones().empty(); ++k) ui.run(1);
  ASSERT_FALSE(run().milestones().empty());
  EXPECT_EQ(run().milestones().front().words, "a previous-token head has formed");
  ui.click("learn/play");
  settle();
  ASSERT_FALSE(look().plays);
  const std::size_t n = run().n_steps();
  ui.run(5);
  EXPECT_EQ(run().n_steps(), n);
  ui.key(Key::right);
  settle();
  EXPECT_EQ(run().n_steps(), n + 1) << "one step";
}

TEST_F(Learn, PausesWhereItsSetupEndsAndGoesOnFromThere) {
  begin("previous-token", [](TrainingSetup& setup) { setup.n_steps = 3; });
  ui.key(Key::space);
  for (int k = 0; k < 500 && look().plays; ++k) ui.run(1);
  EXPECT_EQ(run().n_steps(), 3u);
  EXPECT_THAT(ui.store.message().text, HasSubstr("step 3"));
  ui.key(Key::space);
  for (int k = 0; k < 500 && run().n_steps() < 5; ++k) ui.run(1);
  EXPECT_GE(run().n_steps(), 5u);
}

TEST_F(Learn, ShowsEarlierSnapshots) {
  begin("previous-token");
  step(20);
  ui.key(Key::home);
  settle();
  EXPECT_EQ(look().shown, 0u);
  EXPECT_EQ(learning().picture()->step, 0u);
  const arma::mat first = learning().picture()->weights[0][0];
  ui.key(Key::right);
  settle();
  EXPECT_EQ(learning().picture()->step, 1u);
  ui.click("learn/timeline");
  settle();
  ui.key(Key::end);
  settle();
  EXPECT_FALSE(look().shown);
  EXPECT_EQ(learning().picture()->step, 20u);
  EXPECT_FALSE(arma::approx_equal(first, learning().picture()->weights[0][0], "absdiff", 1e-3));
  ui.key(Key::left);
  settle();
  EXPECT_EQ(learning().picture()->step, 19u);
  EXPECT_EQ(run().n_steps(), 20u) << "nothing was trained";
}

TEST_F(Learn, ChangesTheRateAtOnceAndTheNetworkFromTheStart) {
  begin("previous-token");
  step(3);
  TrainingSetup setup = learning().setup();
  setup.rate = 0.01, setup.batch = 4;
  ui.store.dispatch(app::SetLearning{"previous-token", "", setup});
  step(2);
  EXPECT_EQ(run().n_steps(), 5u);
  EXPECT_EQ(run().network().setup, setup);
  ui.click("learn/layers/1");
  settle();
  EXPECT_EQ(learning().setup().n_layers, 2u);
  EXPECT_EQ(run().n_steps(), 0u);
  EXPECT_TRUE(ui.has("learn/1.0"));
  setup.n_heads = 3;  // of a width of 32
  ui.store.dispatch(app::SetLearning{"previous-token", "", setup});
  EXPECT_TRUE(ui.store.message().is_error);
  EXPECT_THAT(ui.store.message().text, HasSubstr("width: expected a multiple of the 3 heads"));
  EXPECT_EQ(learning().setup().n_layers, 2u) << "nothing has changed";
}

TEST_F(Learn, StopsAtNumbersThatAreNone) {
  begin("induction", [](TrainingSetup& setup) { setup.mistake = "mask_hides_diagonal"; });
  ui.key(Key::space);
  for (int k = 0; k < 500 && look().plays; ++k) ui.run(1);
  EXPECT_FALSE(look().plays);
  EXPECT_TRUE(ui.store.message().is_error);
  EXPECT_THAT(ui.store.message().text, HasSubstr("step 0 is not a number"));
  EXPECT_EQ(run().diverged_at(), 0u);
}

TEST_F(Learn, OpensTheDisplayedStepAsAModel) {
  begin("induction");
  step(4);
  ui.key(Key::home);
  settle();
  const app::LearnedPicture picture = *learning().picture();
  ui.click("learn/open");
  settle();
  const auto* full_model = ui.store.pending().full_model;
  ASSERT_TRUE(full_model) << ui.store.message().text;
  EXPECT_EQ(ui.store.view().look.tab, Tab::layers);
  EXPECT_EQ(ui.store.document().title, "induction, step 0");
  const auto& layers = ui.store.pending().reading->readings()->now->layers;
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_TRUE(arma::approx_equal(layers[1]->heads[1].map, picture.weights[1][1], "absdiff", 1e-5));
  ui.store.dispatch(app::SaveFile{});
  EXPECT_THAT(ui.store.message().text, HasSubstr("Export the run"));
  ui.click("tabs/Learn");
  settle();
  EXPECT_EQ(run().n_steps(), 4u) << "the run is still there";
}

TEST_F(Learn, ExportsTheFolderOfTheCommandLine) {
  support::TemporaryDirectory folder;
  begin("previous-token");
  step(10);
  const auto out = folder / "trained";
  support::carry_out(ui.store, app::ExportLearned{out});
  EXPECT_FALSE(ui.store.message().is_error) << ui.store.message().text;
  for (const char* name :
       {"config.json", "tokenizer.json", "model.safetensors", "snapshots.safetensors", "run.json"})
    EXPECT_TRUE(std::filesystem::exists(out / name)) << name;
  support::carry_out(ui.store, app::ExportLearned{out});
  EXPECT_THAT(ui.store.message().text, HasSubstr("expected a new folder"));
  begin("why-mask", [](TrainingSetup& setup) { setup.causal = false; });
  support::carry_out(ui.store, app::ExportLearned{folder / "other"});
  EXPECT_THAT(ui.store.message().text, HasSubstr("--mask off"));
}

TEST_F(Learn, LearnsATextOfTheUser) {
  ui.store.dispatch(app::SetLearning{"", "abcabcabcabcabcabcabcabcabcabcabcabcabcabc", {}});
  settle();
  EXPECT_EQ(run().data().letters().size(), 3u);
  ui.store.dispatch(app::SetLearning{"", "ab", {}});
  EXPECT_TRUE(ui.store.message().is_error);
}

TEST_F(Learn, DrawsQuicklyWhileItTrains) {
  begin("induction", [](TrainingSetup& setup) { setup.d_model = 32; });
  ui.waits = false;  // as in the window: frames do not wait for steps
  support::look(ui.store, [](app::View& v) { v.learning.plays = true; });
  std::vector<double> ms;
  const auto cpu_ms = [] {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
  };
  std::size_t n_busy = 0;
  for (int k = 0; k < 2000 && run().n_steps() < 30; ++k) {
    const double before = cpu_ms();
    ui.run(1);
    ms.push_back(cpu_ms() - before);
    n_busy += learning().is_busy();
  }
  EXPECT_EQ(run().n_steps() >= 30, true);
  EXPECT_GT(n_busy, 10u) << "frames were drawn while it trained";
  std::ranges::sort(ms);
  EXPECT_LT(ms[ms.size() / 2], 16) << "median of the window's own time";
  support::look(ui.store, [](app::View& v) { v.learning.plays = false; });
}

}  // namespace
