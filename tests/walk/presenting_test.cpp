// For an audience and for the first minute: presenting, numbers that fly, the tour, guesses in lessons.
#include <gmock/gmock.h>

#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "tests/walk/walk.hpp"

namespace walk {
namespace {

using app::CellRef;

struct Presenting : Program {
  const app::Presenting& now() const { return ui.store.view().selection.presenting; }
  void pin(const CellRef& cell) {
    ui.store.dispatch(app::ChangeView{[cell](app::View& view) { view.selection.pinned = cell; }});
    ui.run();
  }
};

TEST_F(Presenting, FillsTheWindowWithOneStageThatArrowsChange) {
  pin({Stage::weights, 0, 2, 1});
  const float before = ui.rect("strip/weights").max.x - ui.rect("strip/weights").min.x;
  ui.key(Key::f5);
  ui.run(4);
  EXPECT_TRUE(now().on);
  EXPECT_FALSE(ui.has("region/model"));
  EXPECT_FALSE(ui.has("region/inspector"));
  ASSERT_TRUE(ui.has("present/weights"));
  EXPECT_GT(ui.rect("present/weights").max.x - ui.rect("present/weights").min.x, 2 * before);
  EXPECT_TRUE(ui.has("present/from/masked_scores"));
  EXPECT_TRUE(ui.has("present/bar"));
  EXPECT_GE(app::platform::font_size(ui.loop.fonts().sans12), 19.0f)
      << "read from the last row, at a height of 1000";
  ui.key(Key::right);
  ui.run();
  EXPECT_TRUE(ui.has("present/dropout_mask"));
  ui.key(Key::left);
  ui.key(Key::left);
  ui.run();
  EXPECT_TRUE(ui.has("present/masked_scores"));
  ui.key(Key::escape);
  ui.run(4);
  EXPECT_FALSE(now().on);
  EXPECT_TRUE(ui.has("region/model"));
  EXPECT_TRUE(ui.has("strip/weights"));
}

TEST_F(Presenting, HasRoomForTheWholeSumOfTwoSources) {
  pin({Stage::contexts, 0, 5, 0});
  ui.key(Key::f5);
  ui.run(4);
  EXPECT_TRUE(ui.has("present/from/values"));
  const auto last_term = ui.rect("inspector/step/0/line/5/a");
  EXPECT_LT(last_term.max.y + 2 * (last_term.max.y - last_term.min.y), ui.rect("present/bar").min.y);
}

TEST_F(Presenting, NamesWhatThePointerIsOver) {
  ui.key(Key::f5);
  ui.run(4);
  ui.move_to("present/weights");
  ui.run();
  EXPECT_TRUE(ui.store.view().selection.hovered);
  EXPECT_TRUE(ui.has("present/named"));
}

TEST_F(Presenting, GoesThroughALessonByArrows) {
  ui.store.dispatch(app::StartLesson{"004"});
  ui.key(Key::f5);
  ui.run(4);
  const std::size_t n = ui.store.lesson()->lesson->steps.size();
  for (std::size_t k = 0; k < n; ++k) {
    EXPECT_EQ(ui.store.lesson()->step, k);
    ASSERT_TRUE(ui.has("present/progress"));
    const auto done = ui.landmarks().find("present/progress");
    EXPECT_NEAR(done->max.x - done->min.x, 1600 * static_cast<double>(k + 1) / static_cast<double>(n), 1);
    ui.key(Key::right);
    ui.run();
  }
}

TEST_F(Presenting, FillsTheScreenAndGoesBack) {
  ui.key(Key::f11);
  ui.run(2);
  EXPECT_TRUE(now().full_screen);
  ui.key(Key::f11);
  ui.run(2);
  EXPECT_FALSE(now().full_screen);
}

TEST_F(Presenting, NumbersFlyFromTheirOperandsToTheirPlaceStepByStep) {
  ui.store.dispatch(app::ChangeView{[](app::View& view) { view.settings.reduce_motion = false; }});
  ui.key(Key::space, {.shift = true});
  EXPECT_FALSE(now().flight) << "nothing is pinned";
  const CellRef cell{Stage::weights, 0, 2, 1};
  pin(cell);
  const auto cells = app::flown_cells(ui.model(), ui.store.live().trace(), cell);
  ASSERT_GE(cells.size(), 3u);
  EXPECT_EQ(cells.back(), cell);
  ui.key(Key::space, {.shift = true});
  ASSERT_TRUE(now().flight);
  EXPECT_TRUE(now().flight->runs);
  ui.run(2);
  EXPECT_TRUE(ui.has("flight/target"));
  ui.click("flight/stop");
  EXPECT_FALSE(now().flight->runs);
  for (std::size_t k = 0; k < cells.size(); ++k) ui.key(Key::right, {.ctrl = true});
  EXPECT_DOUBLE_EQ(now().flight->at, static_cast<double>(cells.size()));
  ui.key(Key::left, {.ctrl = true});
  EXPECT_DOUBLE_EQ(now().flight->at, static_cast<double>(cells.size() - 1));
  ui.click("flight/faster");
  EXPECT_FLOAT_EQ(ui.store.view().settings.flight_speed, 2);
  ui.store.dispatch(app::ChangeView{[&](app::View& view) {
    view.selection.presenting.flight->at = static_cast<double>(cells.size()) - 0.5;
  }});
  ui.run();
  EXPECT_TRUE(ui.has("flight/number/0")) << "halfway";
  ui.key(Key::escape);
  EXPECT_FALSE(now().flight);
  EXPECT_TRUE(ui.store.view().selection.pinned) << "the next Esc releases";
}

TEST_F(Presenting, NothingFliesWhereMotionIsReduced) {
  pin({Stage::weights, 0, 2, 1});
  ui.key(Key::space, {.shift = true});
  EXPECT_FALSE(now().flight) << "as in all walks";
}

struct Touring : Program {
  std::size_t step() const { return ui.store.view().selection.tour->step; }
  bool is_on() const { return ui.store.view().selection.tour.has_value(); }
  void begin() {
    ui.click("menu/Help");
    ui.click("menu/help/tour");
    ui.run();
  }
};

TEST_F(Touring, GoesOnAsEachThingIsDoneByThePerson) {
  EXPECT_FALSE(is_on()) << "only asked for, or at the very first start";
  begin();
  ASSERT_TRUE(is_on());
  EXPECT_TRUE(ui.has("tour/card"));
  ui.drag("edit/cell/1/0", 60, 0);
  ui.run(3);
  ASSERT_EQ(step(), 1u) << "a number was dragged";
  ui.move_to("strip/weights");
  ui.run(3);
  ASSERT_EQ(step(), 2u) << "a weight was looked at";
  ui.click("strip/weights");
  ui.run(3);
  EXPECT_EQ(step(), 2u) << "pinned, and no operand followed yet";
  ui.click("inspector/step/0/line/0/a");
  ui.run(3);
  ASSERT_EQ(step(), 3u) << "an operand was followed";
  ui.click("model/causal");
  ui.run(3);
  ASSERT_EQ(step(), 4u) << "the mask was switched";
  ui.key(Key::e, {.ctrl = true});
  ui.run(3);
  EXPECT_FALSE(is_on());
  EXPECT_TRUE(ui.store.view().settings.knows_tour) << "it is not offered again";
  EXPECT_EQ(ui.store.view().forms.dialog, app::Dialog::export_files);
}

TEST_F(Touring, CanBeSkipped) {
  begin();
  ui.click("tour/next");
  ui.run();
  EXPECT_EQ(step(), 1u);
  ui.click("tour/skip");
  ui.run();
  EXPECT_FALSE(is_on());
  EXPECT_FALSE(ui.has("tour/card"));
  EXPECT_TRUE(ui.store.view().settings.knows_tour);
}

TEST_F(Program, AnEditMarksWhatItChangedAndSaysWhatItWas) {
  ui.store.dispatch(app::ChangeView{[](app::View& view) {
    view.selection.pinned = CellRef{Stage::weights, 0, 2, 0};
  }});
  ui.run();
  EXPECT_FALSE(ui.has("inspector/change"));
  ui.drag("edit/cell/2/0", 80, 0);
  ui.run();
  EXPECT_TRUE(ui.has("inspector/change"));
  ui.store.dispatch(app::LoadPreset{"004-causal"});
  ui.store.dispatch(app::DiscardAndContinue{});
  ui.store.dispatch(app::ChangeView{[](app::View& view) {
    view.selection.pinned = CellRef{Stage::weights, 0, 2, 0};
  }});
  ui.run();
  EXPECT_FALSE(ui.has("inspector/change")) << "nothing was edited in this one";
}

TEST_F(Program, ALessonAsksForAGuessBeforeItAnswers) {
  ui.store.dispatch(app::StartLesson{"004"});
  ui.run(3);
  ASSERT_TRUE(ui.has("lesson/question"));
  ui.click("strip/weights");
  ui.run(2);
  EXPECT_TRUE(ui.store.view().selection.lesson->guess);
  EXPECT_FALSE(ui.has("lesson/question"));
  EXPECT_TRUE(ui.has("lesson/try"));
  ui.click("model/causal");
  ui.run(2);
  EXPECT_TRUE(ui.has("lesson/seen"));
}

TEST_F(Program, InALessonArrowsGoOnWhereverTheKeyboardIs) {
  ui.store.dispatch(app::StartLesson{"000"});
  ui.run(2);
  ui.drag("edit/cell/1/1", 40, 0);
  ui.run();
  ASSERT_TRUE(ui.store.view().selection.cursor) << "the matrix has the keyboard";
  ui.key(Key::right);
  EXPECT_EQ(ui.store.lesson()->step, 1u);
  ui.key(Key::left);
  EXPECT_EQ(ui.store.lesson()->step, 0u);
}

}  // namespace
}  // namespace walk
