// What a newcomer does in the first hour, by mouse alone and by keyboard alone: only what the window shows.
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>

#include "app/session/full_model_reading.hpp"
#include "core/lessons/lessons.hpp"
#include "tests/support/waiting.hpp"
#include "tests/walk/walk.hpp"

namespace walk {
namespace {

using core::editing::MatrixName;

struct Newcomer : testing::Test {
  support::TemporaryDirectory directory;
  Walk ui{1280, 800};

  Newcomer() {
    ui.sharp = false;
    ui.store.apply_settings({.recent = {}, .progress = {}, .models = {WALK_EXAMPLES "/tiny_gpt"}});
    ui.store.dispatch(app::BrowseTo{directory.path()});  // so that no file is left elsewhere
    settle();
  }
  /// Runs frames until everything requested is displayed.
  void settle() {
    support::settle(ui.store, [&] { ui.run(1); });
    ui.run(3);
  }
  double weight(std::size_t row, std::size_t column) const {
    return ui.store.live().trace().at(Stage::weights, 0)(row, column);
  }
  double number(MatrixName name) const {
    const auto& model = ui.model();
    return find_matrix(model, matrix_ref(model, name, 0, ui.store.view().look.head))->at(0, 0);
  }
  const app::Prediction& next() const { return *ui.store.pending().reading->prediction(); }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> all;
    for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
      if (entry.path().extension() == ".csv") all.push_back(entry.path());
    return all;
  }
};

struct ByMouse : Newcomer {
  void click(const std::string& name) {
    ui.click(name);
    settle();
  }
  void drag(const std::string& name, float by) {
    ui.drag(name, by, 0);
    settle();
  }
};

TEST_F(ByMouse, ChangesNumbersMaskAndDropoutComparesHeadsAndExports) {
  const double before = weight(3, 1);
  drag("edit/cell/1/0", 60);
  const double moved = weight(3, 1);
  EXPECT_NE(moved, before) << "an embedding";
  click("edit/tab/W_q");
  drag("edit/cell/0/0", 60);
  EXPECT_NE(weight(3, 1), moved) << "W_q";
  ASSERT_EQ(weight(0, 5), 0);
  click("model/causal");
  EXPECT_NE(weight(0, 5), 0) << "mask";
  drag("model/dropout", 30);
  EXPECT_GT(ui.model().dropout.rate, 0);
  click("tabs/Heads");
  EXPECT_TRUE(ui.has("heads/name/0"));
  EXPECT_TRUE(ui.has("heads/name/1"));
  click("menu/File");
  click("menu/file/export");
  click("dialog/form/0");
  click("dialog/confirm");
  EXPECT_FALSE(files().empty()) << ui.store.message().text;
}

TEST_F(ByMouse, GoesThroughTheFirstLessonToItsEnd) {
  click("menu/Lessons");
  click("menu/lessons/000");
  ASSERT_TRUE(ui.store.lesson());
  const std::size_t n = ui.store.lesson()->lesson->steps.size();
  for (std::size_t k = 0; k + 1 < n; ++k) {
    ASSERT_EQ(ui.store.lesson()->step, k);
    click("lesson/next");
  }
  EXPECT_EQ(ui.store.lesson()->step, n - 1);
  click("lesson/leave");
  EXPECT_FALSE(ui.store.lesson());
}

TEST_F(ByMouse, MovesThePredictionOfAWholeModelByOneWeight) {
  for (const char* name : {"menu/File", "menu/File/New", "menu/File/New/Whole model", "menu/model/tiny_gpt"})
    click(name);
  ASSERT_TRUE(ui.store.pending().full_model);
  click("layers/2.3");
  const double before = next().chosen.now;
  click("tabs/Stages");
  click("edit/tab/W_v");
  drag("edit/cell/0/96", 300);
  EXPECT_NE(next().chosen.now, before);
  EXPECT_TRUE(ui.has("next/probability")) << "in sight";
}

struct ByKeyboard : Newcomer {
  void key(Key key, support::Modifiers m = {}) {
    ui.key(key, m);
    settle();
  }
  /// Finds an action by its words and performs it.
  void find(const std::string& words) {
    key(Key::p, {.ctrl = true, .shift = true});
    ui.type(words);
    settle();
    key(Key::enter);
  }
  void enter_number(const std::string& digits) {
    ui.type(digits);
    key(Key::enter);
    key(Key::escape);
  }
};

TEST_F(ByKeyboard, ChangesNumbersMaskAndDropoutComparesHeadsAndExports) {
  key(Key::e);
  enter_number("2.5");
  EXPECT_EQ(number(MatrixName::embeddings), 2.5);
  find("edit w_q");
  enter_number("-1");
  EXPECT_EQ(number(MatrixName::query_weight), -1);
  ASSERT_EQ(weight(0, 5), 0);
  key(Key::c);
  EXPECT_NE(weight(0, 5), 0);
  find("dropout rate 0.5");
  EXPECT_EQ(ui.model().dropout.rate, 0.5);
  key(Key::digit_2);
  EXPECT_EQ(ui.store.view().look.head, 1u);
  key(Key::digit_2, {.ctrl = true});
  EXPECT_TRUE(ui.has("heads/name/0"));
  key(Key::e, {.ctrl = true});
  key(Key::enter);
  EXPECT_FALSE(files().empty()) << ui.store.message().text;
}

TEST_F(ByKeyboard, GoesThroughTheFirstLessonToItsEnd) {
  find("causal attention in eleven");
  ASSERT_TRUE(ui.store.lesson());
  const std::size_t n = ui.store.lesson()->lesson->steps.size();
  for (std::size_t k = 0; k + 1 < n; ++k) key(Key::right);
  EXPECT_EQ(ui.store.lesson()->step, n - 1);
  key(Key::escape);
  EXPECT_FALSE(ui.store.lesson());
}

TEST_F(ByKeyboard, MovesThePredictionOfAWholeModelByOneWeight) {
  find("tiny gpt");
  ASSERT_TRUE(ui.store.pending().full_model);
  while (ui.store.pending().full_model->layer < 2) key(Key::page_down);
  const double before = next().chosen.now;
  find("edit w_v");
  enter_number("1.5");
  EXPECT_NE(next().chosen.now, before);
}

TEST_F(ByKeyboard, WatchesAHeadFormAndOpensItsNetwork) {
  ui.store.dispatch(app::set<&app::Forms::start_page>(true));
  settle();
  ui.type("4");
  settle();
  ASSERT_EQ(ui.store.view().look.tab, app::Tab::learn);
  EXPECT_EQ(ui.store.learning().task(), "induction");
  find("watch it learn: previous-token");
  ASSERT_EQ(ui.store.learning().task(), "previous-token");
  const auto& run = ui.store.learning().run();
  ui.key(Key::space);
  ASSERT_TRUE(ui.store.view().learning.plays);
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (run->milestones().empty() && std::chrono::steady_clock::now() < end) ui.run(1);
  ASSERT_FALSE(run->milestones().empty());
  if (ui.store.view().learning.plays) key(Key::space);
  settle();
  ASSERT_FALSE(ui.store.view().learning.plays);
  const std::size_t n = run->n_steps();
  key(Key::home);
  EXPECT_EQ(ui.store.learning().picture()->step, 0u);
  EXPECT_EQ(run->n_steps(), n);
  key(Key::end);
  EXPECT_EQ(ui.store.learning().picture()->step, n);
  find("open as model");
  ASSERT_TRUE(ui.store.pending().full_model) << ui.store.message().text;
  EXPECT_EQ(ui.store.view().look.tab, app::Tab::layers);
  EXPECT_TRUE(ui.has("layers/0.0"));
}

TEST_F(ByKeyboard, SeesAnotherHeadTakeOverFromTheOneThatItAblates) {
  ui.store.dispatch(app::set<&app::Forms::start_page>(true));
  settle();
  ui.type("4");
  settle();
  const auto& run = ui.store.learning().run();
  const auto plays_until = [&](const auto& is_there) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!is_there() && std::chrono::steady_clock::now() < end) {
      if (!ui.store.view().learning.plays) ui.key(Key::space);
      ui.run(1);
    }
    return is_there();
  };
  ASSERT_TRUE(plays_until([&] { return run->milestones().size() == 3; })) << "induction";
  const auto& induction = run->measurements().back().patterns[1][1];
  ui.click(induction[1] > induction[0] ? "learn/1.1" : "learn/1.0");
  ui.key(Key::x);
  ASSERT_TRUE(plays_until([&] { return run->milestones().size() == 4; })) << "another head";
  EXPECT_FALSE(run->milestones().back().detail.empty());
  ui.key(Key::space);
  settle();
  find("undo");
  EXPECT_TRUE(run->changes().empty());
}

}  // namespace
}  // namespace walk
