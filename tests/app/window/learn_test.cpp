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

TEST_F(Learn, GivesWayToASessionThatIsOpened) {
  begin("previous-token");
  ASSERT_EQ(ui.store.view().look.tab, Tab::learn);
  ui.store.dispatch(app::OpenPath{.path = FIXTURES "/sessions/batch.json"});
  settle();
  EXPECT_EQ(ui.store.view().look.tab, Tab::stages) << ui.store.message().text;
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
  EXPECT_THAT(ui.store.message().text, HasSubstr("export the run"));
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

TEST_F(Learn, LearnsOnWithoutAHeadAndUndoReturnsToTheStepBefore) {
  begin("induction");
  step(12);
  ui.store.dispatch(app::set<&app::LearningLook::head>({1, 1}));
  ui.key(Key::x);
  settle();
  using Heads = std::vector<std::size_t>;
  EXPECT_EQ(run().network().layers[1].attention.heads_off, Heads{1});
  EXPECT_EQ(learning().picture()->heads_off[1], Heads{1});
  EXPECT_EQ(run().n_steps(), 12u);
  step(5);
  TrainingSetup setup = learning().setup();
  setup.causal = false;
  ui.store.dispatch(app::SetLearning{"induction", "", setup});
  settle();
  EXPECT_TRUE(learning().picture()->visible.empty());
  setup.mistake = "no_scale";
  ui.store.dispatch(app::SetLearning{"induction", "", setup});
  step(2);
  EXPECT_EQ(ui.store.document().steps.undo_words, "bug no_scale");
  for (const std::size_t n : {17u, 17u, 12u}) {
    ui.store.dispatch(app::Undo{});
    settle();
    EXPECT_EQ(run().n_steps(), n);
  }
  EXPECT_EQ(run().network().layers[1].attention.heads_off, Heads{});
  EXPECT_TRUE(learning().setup().causal);
  ui.store.dispatch(app::Undo{});
  EXPECT_THAT(ui.store.message().text, HasSubstr("nothing to undo"));
  ui.store.dispatch(app::Redo{});
  settle();
  EXPECT_EQ(run().n_steps(), 17u);
  EXPECT_EQ(run().network().layers[1].attention.heads_off, Heads{1});
}

TEST_F(Learn, AnotherNetworkIsOneUndoStep) {
  begin("induction");
  step(7);
  ui.click("learn/kv_heads/0");
  settle();
  EXPECT_EQ(learning().setup().kv_heads(), 1u);
  EXPECT_EQ(run().n_steps(), 0u);
  ui.store.dispatch(app::Undo{});
  settle();
  EXPECT_EQ(learning().setup().kv_heads(), 2u);
  EXPECT_EQ(run().n_steps(), 7u);
}

TEST_F(Learn, GoesOnFromAnEarlierStep) {
  begin("previous-token");
  step(9);
  const auto before = run().snapshots()[4];
  ui.store.dispatch(app::LearnOnFrom{4});
  settle();
  ASSERT_EQ(run().n_steps(), 4u);
  for (std::size_t k = 0; k < before->parameters.size(); ++k)
    EXPECT_TRUE(arma::approx_equal(run().snapshots()[4]->parameters[k].numbers, before->parameters[k].numbers,
                                   "absdiff", 0));
  ui.store.dispatch(app::Undo{});
  EXPECT_EQ(run().n_steps(), 9u);
}

TEST_F(Learn, ComparesStepsWithA) {
  ImGui::GetIO().DisplaySize = {1920, 1080};
  begin("previous-token");
  step(5);
  ui.key(Key::k);
  step(20);
  ASSERT_TRUE(learning().document().baseline);
  EXPECT_EQ(learning().document().baseline->step, 5u);
  EXPECT_EQ(learning().baseline_picture()->step, 5u);
  EXPECT_TRUE(ui.has("learn/change"));
  ui.click("learn/drop_a");
  EXPECT_FALSE(learning().document().baseline);
}

TEST_F(Learn, IsSavedAndOpenedAndAsksBeforeItIsLost) {
  support::TemporaryDirectory folder;
  begin("recall");
  step(6);
  ui.store.dispatch(app::ToggleLearnedHead{0, 0});
  settle();
  step(3);
  EXPECT_EQ(ui.store.document().title, "Watch it learn: recall");
  EXPECT_TRUE(ui.store.document().modified);
  ui.store.dispatch(app::Quit{});
  EXPECT_FALSE(ui.store.wants_to_quit());
  EXPECT_EQ(ui.store.view().forms.dialog, app::Dialog::unsaved_work);
  ui.store.dispatch(app::CancelQuestion{});
  const auto path = folder / "recall-run.json";
  support::carry_out(ui.store, app::SaveFileAs{path});
  EXPECT_FALSE(ui.store.document().modified) << ui.store.message().text;
  EXPECT_EQ(ui.store.document().title, "recall-run.json");
  const auto network = run().network();

  app::Store other;
  other.dispatch(app::OpenPath{.path = path});
  support::settle(other);
  ASSERT_TRUE(other.learning().run()) << other.message().text;
  EXPECT_EQ(other.view().look.tab, Tab::learn);
  EXPECT_EQ(other.learning().run()->network(), network);
  EXPECT_FALSE(other.document().modified);
  ui.store.dispatch(app::Quit{});
  EXPECT_TRUE(ui.store.wants_to_quit());
}

TEST_F(Learn, IsRecoveredAfterACrash) {
  support::TemporaryDirectory folder;
  app::Store later;
  {
    app::Store store;
    store.apply_settings({.recent = {}, .progress = {}, .journals = folder.path()});
    TrainingSetup setup = core::training::find_task("recall")->setup;
    store.dispatch(app::SetLearning{"recall", "", setup});
    support::settle(store);
    store.dispatch(app::StepLearning{4});
    support::settle(store);
    store.dispatch(app::ToggleLearnedHead{1, 0});
    support::settle(store);
    store.dispatch(app::QuitNow{});
  }
  later.apply_settings({.recent = {}, .progress = {}, .journals = folder.path()});
  ASSERT_EQ(later.view().forms.dialog, app::Dialog::recovery);
  EXPECT_THAT(later.view().forms.leftovers.front(), HasSubstr("A run of training, "));
  later.dispatch(app::RestoreLeftover{0});
  support::settle(later);
  ASSERT_TRUE(later.learning().run()) << later.message().text;
  EXPECT_EQ(later.learning().run()->n_steps(), 4u);
  EXPECT_EQ(later.learning().run()->changes().size(), 1u);
  EXPECT_TRUE(later.document().modified);
}

TEST_F(Learn, LearnsOnWithTheEditsOfTheOpenedStep) {
  begin("induction", [](TrainingSetup& setup) { setup.mistake = "scale_twice"; });
  step(3);
  const app::LearnedPicture picture = *learning().picture();
  ui.store.dispatch(app::OpenLearned{});
  settle();
  const auto& layers = ui.store.pending().reading->readings()->now->layers;
  EXPECT_TRUE(arma::approx_equal(layers[1]->heads[1].map, picture.weights[1][1], "absdiff", 1e-5))
      << "with the bug";
  EXPECT_FALSE(ui.store.document().modified);
  const core::editing::MatrixRef place{core::attention::MatrixName::query_weight, 0};
  ui.store.dispatch(app::ApplyEdit{core::editing::SetCell{place, 1, 2, 0.75}});
  ui.store.dispatch(app::ToggleLayerHead{1, 0});
  settle();
  ui.store.dispatch(app::LearnWithEdits{});
  settle();
  EXPECT_EQ(ui.store.view().look.tab, Tab::learn) << ui.store.message().text;
  const auto& layer = run().network().layers[0].attention;
  EXPECT_EQ(layer.projections->query.weight.at(1, 2), 0.75);
  EXPECT_EQ(run().changes().size(), 2u);
  ui.store.dispatch(app::Undo{});
  EXPECT_TRUE(run().changes().empty()) << "one undo step";
}

TEST_F(Learn, PausesWhenAnotherTabIsDisplayed) {
  begin("previous-token");
  ui.key(Key::space);
  ASSERT_TRUE(look().plays);
  ui.store.dispatch(app::set<&app::Look::tab>(Tab::stages));
  ui.run(2);
  EXPECT_FALSE(look().plays);
  EXPECT_THAT(ui.store.message().text, HasSubstr("only while Learn is displayed"));
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
