// Navigation by mouse and by keyboard alone; every item of every menu; presenting, operand animation, tour.
#include <gmock/gmock.h>

#include <chrono>
#include <set>

#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "core/graph/validation.hpp"
#include "tests/support/look.hpp"
#include "tests/walk/walk.hpp"

namespace walk {
namespace {

using app::CellRef;

struct Looks : Program {
  void point_at(std::size_t row, std::size_t column) { ui.play(support::move_to(cell(row, column))); }
  void click_cell(std::size_t row, std::size_t column) { ui.play(support::click(cell(row, column))); }
  /// Returns the center of a cell of the 6 × 6 weights.
  ImVec2 cell(std::size_t row, std::size_t column) const {
    const auto rect = ui.landmarks().find("strip/weights").value();
    const ImVec2 size(rect.max.x - rect.min.x, rect.max.y - rect.min.y);
    return {rect.min.x + size.x * (static_cast<float>(column) + 0.5f) / 6,
            rect.min.y + size.y * (static_cast<float>(row) + 0.5f) / 6};
  }
};

TEST_F(Looks, RowsOfTokensStandBesideEachOtherWhereOneMapNeedsWiderCells) {
  ui.store.dispatch(app::ApplyEdit{core::editing::SetCausal{false}});
  for (const auto& [column, value] : {std::pair{0, 5.0}, {1, 7.0}})
    ui.store.dispatch(app::ApplyEdit{core::editing::SetCell{
        {core::editing::MatrixName::embeddings, 0}, 0, static_cast<std::size_t>(column), value}});
  ui.run(3);
  const auto scores = ui.rect("strip/scores"), scaled = ui.rect("strip/scaled_scores");
  EXPECT_GE(scores.max.x - scores.min.x, scaled.max.x - scaled.min.x);
  EXPECT_EQ(scores.min.y, scaled.min.y);
}

TEST_F(Looks, HoveringACellPutsItIntoTheInspectorAndLeavingTakesItOut) {
  EXPECT_FALSE(ui.has("inspector/value"));
  const ImVec2 beside(cell(3, 1).x + 40, cell(3, 1).y + 30);
  const auto before = ui.pixel(beside);
  point_at(3, 1);
  EXPECT_NE(ui.pixel(beside), before) << "a tooltip";
  EXPECT_EQ(ui.store.view().selection.hovered, (CellRef{Stage::weights, 0, 3, 1}));
  EXPECT_TRUE(ui.has("inspector/value"));
  ui.move_to("region/status");
  EXPECT_FALSE(ui.store.view().selection.hovered.has_value());
  EXPECT_FALSE(ui.has("inspector/value"));
}

TEST_F(Looks, AnEditMarksWhatItChanged) {
  click_cell(2, 0);
  EXPECT_FALSE(ui.has("inspector/change"));
  ui.drag("edit/cell/2/0", 80, 0);
  ui.run();
  EXPECT_TRUE(ui.has("inspector/change"));
}

TEST_F(Looks, APinDimsWhatLiesOffItsRowAndColumn) {
  const auto before = ui.cell_color("strip/weights", 6, 6, 2, 0);
  click_cell(4, 3);
  ui.move_to("region/status");
  EXPECT_TRUE(ui.has("inspector/value")) << "it stays when the mouse leaves";
  EXPECT_NE(ui.cell_color("strip/weights", 6, 6, 2, 0), before);
  ui.key(Key::escape);
  ui.run();
  EXPECT_EQ(ui.cell_color("strip/weights", 6, 6, 2, 0), before);
}

TEST_F(Looks, ThemesSwitchTheGroundAndTheColorsOfTheData) {
  const ImVec2 corner(ui.landmarks().find("region/stages")->max.x - 30,
                      ui.landmarks().find("region/stages")->max.y - 4);
  EXPECT_TRUE(alike(ui.pixel(corner), app::palette(true).background.back));
  ui.key(Key::t);
  ui.run();
  EXPECT_FALSE(ui.store.view().settings.dark);
  EXPECT_TRUE(alike(ui.pixel(corner), app::palette(false).background.back));
  EXPECT_TRUE(alike(ui.cell_color("strip/weights", 6, 6, 5, 0),
                    app::render::color_at(app::render::ColorMap::weights, false, ui.weight(5, 0))));
}

TEST_F(Looks, ScaleEnlargesEverythingAndStaysInTheWindow) {
  const auto before = ui.landmarks().find("model/causal").value();
  support::look(ui.store, [](app::View& v) { v.settings.scale = 2; });
  ui.run(4);
  const auto after = ui.landmarks().find("model/causal").value();
  EXPECT_NEAR(after.max.y - after.min.y, 2 * (before.max.y - before.min.y), 2);
  ui.play(support::turn_wheel(ui.center("model/preset"), -3));  // MODEL scrolls there
  ui.click("model/causal");
  EXPECT_FALSE(ui.model().mask.causal);
}

TEST_F(Looks, SplittersMoveTheRegionsWithTheMouse) {
  const float before = ui.landmarks().find("region/stages")->min.x;
  ui.drag("splitter/left", 60, 0);
  EXPECT_NEAR(ui.landmarks().find("region/stages")->min.x, before + 60, 2);
  const float right = ui.landmarks().find("region/stages")->max.x;
  ui.drag("splitter/right", -50, 0);
  EXPECT_NEAR(ui.landmarks().find("region/stages")->max.x, right - 50, 2);
}

struct WithoutAMouse : Program {
  void keys(std::initializer_list<Key> all, support::Modifiers m = {}) {
    for (const Key key : all) ui.key(key, m);
    ui.run();
  }
  const app::View& view() const { return ui.store.view(); }
};

TEST_F(WithoutAMouse, ANumberIsChangedComparedAndTakenBack) {
  keys({Key::k});
  const double before = (*ui.model().sequences[0].embeddings)(0, 0);
  keys({Key::e});
  ui.type("2.5");
  keys({Key::enter, Key::escape, Key::escape});
  EXPECT_EQ((*ui.model().sequences[0].embeddings)(0, 0), 2.5);
  keys({Key::digit_4}, {.ctrl = true});
  EXPECT_EQ(view().look.tab, app::Tab::compare);
  ASSERT_NE(ui.store.live_comparison().comparison(), nullptr);
  ASSERT_NE(ui.store.live_comparison().comparison()->first, nullptr);
  EXPECT_EQ(ui.store.live_comparison().comparison()->first->all.stage, Stage::embeddings);
  EXPECT_DOUBLE_EQ(ui.store.live_comparison().comparison()->first->all.largest, 2.5 - before);
  keys({Key::z}, {.ctrl = true});
  EXPECT_EQ((*ui.model().sequences[0].embeddings)(0, 0), before);
}

using Names = std::set<std::string>;
using Path = std::vector<std::string>;

struct Menus : Program {
  Names lines() const {
    Names names;
    for (const auto& [name, rect] : ui.landmarks().all())
      if (name.starts_with("menu/") && name != "menu/title") names.insert(name);
    return names;
  }
  Menus() { ui.sharp = false; }
  void close_everything() {
    support::look(ui.store, [](app::View& view) { view.selection.presentation = {}; });
    ui.store.dispatch(app::LeaveTour{});
    ui.run(2);
    ui.move_to("region/status");  // over an item with a submenu, the submenu would reopen
    for (int i = 0; i < 4; ++i) ui.key(Key::escape);
    ui.store.dispatch(app::CancelQuestion{});
    ui.run(3);
  }
  /// Clicks along a path; returns the items that the last click opened.
  Names walk(const Path& path) {
    close_everything();
    Names before;
    for (const std::string& name : path) {
      before = lines();
      ui.click(name);
    }
    Names opened;
    for (const std::string& name : lines())
      if (!before.contains(name)) opened.insert(name);
    return opened;
  }
  /// Walks the whole tree below a path; returns the number of items that open nothing.
  std::size_t walk_all(const Path& path, std::vector<std::string>& clicked) {
    const Names opened = walk(path);
    clicked.push_back(path.back());
    EXPECT_FALSE(core::attention::check(ui.model()).has_value()) << path.back();
    if (opened.empty()) return 1;
    std::size_t leaves = 0;
    for (const std::string& name : opened) {
      Path deeper = path;
      deeper.push_back(name);
      leaves += walk_all(deeper, clicked);
    }
    return leaves;
  }
};

TEST_F(Menus, CanBeClickedLineByLine) {
  std::vector<std::string> clicked;
  std::size_t leaves = 0;
  for (const std::string& name : lines()) leaves += walk_all({name}, clicked);
  for (const char* line :
       {"menu/file/open", "menu/new/000-causal", "menu/scale/200", "menu/shown/weights", "menu/theme/light",
        "menu/edit/undo", "menu/edit/add_token", "menu/help/keys", "menu/help/about", "menu/file/quit"})
    EXPECT_THAT(clicked, testing::Contains(line));
  EXPECT_GT(leaves, 35u);
}

TEST_F(Menus, CloseWithEscapeInTheMomentInWhichAnotherOpens) {
  ui.click("menu/File");
  ASSERT_TRUE(ui.has("menu/file/open"));
  support::InputFrame over, pressed, released;
  over.mouse = ui.center("menu/Edit");
  pressed.key = app::KeyPress{Key::escape};
  released.released = Key::escape;
  ui.play({over, pressed, released});
  ui.move_to("region/status");
  ui.run(3);
  EXPECT_FALSE(ui.has("menu/file/open"));
}

struct Presentation : Program {
  const app::Presentation& now() const { return ui.store.view().selection.presentation; }
  void pin(const CellRef& cell) {
    support::look(ui.store, [cell](app::View& view) { view.selection.pinned = cell; });
    ui.run();
  }
};

TEST_F(Presentation, FillsTheWindowWithOneStageThatArrowsChange) {
  pin({Stage::weights, 0, 2, 1});
  const float before = ui.rect("strip/weights").max.x - ui.rect("strip/weights").min.x;
  ui.key(Key::f5);
  ui.run(4);
  EXPECT_TRUE(now().on);
  EXPECT_FALSE(ui.has("region/model"));
  EXPECT_FALSE(ui.has("region/inspector"));
  ASSERT_TRUE(ui.has("present/weights"));
  EXPECT_GT(ui.rect("present/weights").max.x - ui.rect("present/weights").min.x, 1.5f * before);
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
  ui.move_to("present/masked_scores");
  ui.run();
  EXPECT_TRUE(ui.has("present/named")) << "what the pointer is over";
  ui.key(Key::f11);
  ui.run(2);
  EXPECT_TRUE(now().full_screen);
  ui.key(Key::f11);
  ui.run(2);
  EXPECT_FALSE(now().full_screen);
  ui.key(Key::escape);
  ui.run(4);
  EXPECT_FALSE(now().on);
  EXPECT_TRUE(ui.has("region/model"));
  EXPECT_TRUE(ui.has("strip/weights"));
}

TEST_F(Presentation, HasRoomForTheWholeSumOfTwoSources) {
  pin({Stage::contexts, 0, 5, 0});
  ui.key(Key::f5);
  ui.run(4);
  EXPECT_TRUE(ui.has("present/from/values"));
  const auto last_term = ui.rect("inspector/step/0/line/5/a");
  EXPECT_LT(last_term.max.y + 2 * (last_term.max.y - last_term.min.y), ui.rect("present/bar").min.y);
}

TEST_F(Presentation, GoesThroughALessonByArrows) {
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

TEST_F(Presentation, NumbersFlyFromTheirOperandsToTheirPlaceStepByStep) {
  support::look(ui.store, [](app::View& view) { view.settings.reduce_motion = false; });
  ui.key(Key::space, {.shift = true});
  EXPECT_FALSE(now().operand_animation) << "nothing is pinned";
  const CellRef cell{Stage::weights, 0, 2, 1};
  pin(cell);
  const auto cells =
      app::animated_cells({ui.store.live().graph(), ui.model(), ui.store.live().trace()}, cell);
  ASSERT_GE(cells.size(), 3u);
  EXPECT_EQ(cells.back(), cell);
  ui.key(Key::space, {.shift = true});
  ASSERT_TRUE(now().operand_animation);
  EXPECT_TRUE(now().operand_animation->is_running);
  ui.run(2);
  EXPECT_TRUE(ui.has("flight/target"));
  ui.click("flight/stop");
  EXPECT_FALSE(now().operand_animation->is_running);
  for (std::size_t k = 0; k < cells.size(); ++k) ui.key(Key::right, {.ctrl = true});
  EXPECT_DOUBLE_EQ(now().operand_animation->at, static_cast<double>(cells.size()));
  ui.key(Key::left, {.ctrl = true});
  EXPECT_DOUBLE_EQ(now().operand_animation->at, static_cast<double>(cells.size() - 1));
  ui.click("flight/faster");
  EXPECT_FLOAT_EQ(ui.store.view().settings.animation_speed, 2);
  support::look(ui.store, [&](app::View& view) {
    view.selection.presentation.operand_animation->at = static_cast<double>(cells.size()) - 0.5;
  });
  ui.run();
  EXPECT_TRUE(ui.has("flight/number/0")) << "halfway";
  ui.key(Key::escape);
  EXPECT_FALSE(now().operand_animation);
  EXPECT_TRUE(ui.store.view().selection.pinned) << "the next Esc releases";
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
  const core::attention::Model before = ui.model();
  begin();
  ASSERT_TRUE(is_on());
  EXPECT_TRUE(ui.has("tour/card"));
  ui.drag("edit/cell/1/0", 60, 0);
  ui.run(3);
  ASSERT_EQ(step(), 1u) << "a number was dragged";
  ui.move_to("strip/weights");
  ui.run(3);
  EXPECT_EQ(step(), 1u) << "its words can be read";
  ui.click("strip/weights");
  ui.run(3);
  ASSERT_EQ(step(), 2u) << "a weight was pinned, and no operand followed yet";
  ui.click("inspector/step/0/line/0/a");
  ui.run(3);
  ASSERT_EQ(step(), 3u) << "an operand was followed";
  ui.click("model/causal");
  ui.run(3);
  ASSERT_EQ(step(), 4u) << "the mask was switched";
  ui.drag("model/dropout", 30, 0);
  ui.run(3);
  ASSERT_EQ(step(), 5u) << "weights are dropped";
  ui.key(Key::digit_2);
  ui.run(3);
  ASSERT_EQ(step(), 6u) << "another head is shown";
  ui.key(Key::e, {.ctrl = true});
  ui.run(3);
  ASSERT_EQ(step(), 7u);
  EXPECT_EQ(ui.store.view().forms.dialog, app::Dialog::export_files);
  ui.key(Key::escape);
  ui.run(3);
  EXPECT_FALSE(ui.model() == before);
  ui.click("tour/next");
  ui.run(3);
  EXPECT_FALSE(is_on());
  EXPECT_TRUE(ui.model() == before) << "the model is what it was before the tour";
  EXPECT_TRUE(ui.store.view().settings.has_seen_tour) << "it is not offered again";
}

TEST_F(Touring, AsksForAnotherHeadThanTheDisplayedOne) {
  ui.key(Key::digit_2);
  begin();
  while (step() < 5) ui.store.dispatch(app::AdvanceTour{});
  ui.run(3);
  ASSERT_EQ(step(), 5u) << "head 1 was displayed before";
  ui.key(Key::digit_1);
  ui.run(3);
  EXPECT_EQ(step(), 6u);
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
  EXPECT_TRUE(ui.store.view().settings.has_seen_tour);
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

TEST_F(Program, SleepsBetweenTheBlinksOfATextCursor) {
  ui.store.dispatch(app::ShowDialog{app::Dialog::palette});
  ui.run(10);
  ASSERT_TRUE(ImGui::GetIO().WantTextInput);
  int n = 0;
  for (const auto end = app::Clock::now() + std::chrono::seconds(2); app::Clock::now() < end; ++n)
    ui.loop.step();
  EXPECT_LE(n, 20);  // it blinks every 0.4 seconds, and each picture that is shown may wake it once more
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
