// One stage alone, folded stages, row sums and entropy, walking over cells by keyboard, the RoPE view.
#include <gmock/gmock.h>

#include <cmath>

#include "core/graph/attend.hpp"
#include "tests/support/program.hpp"
#include "tests/support/random_model.hpp"

namespace {

using app::CellRef;
using app::Key;
using core::attention::Stage;

struct LargeStage : testing::Test {
  gui::Panels ui{gui::draw_strip, {1200, 1000}};
  void SetUp() override { ui.run(); }
};

TEST_F(LargeStage, IsReachedByADoubleClickAndLeftWithEscape) {
  ui.double_click("strip/scores");
  EXPECT_EQ(ui.view().look.large, Stage::scores);
  EXPECT_TRUE(ui.has("large/scores"));
  EXPECT_FALSE(ui.has("strip/scores"));
  ui.key(Key::escape);  // unpins the cell of the first click
  ui.key(Key::escape);
  EXPECT_EQ(ui.view().look.large, std::nullopt);
  EXPECT_TRUE(ui.has("strip/scores"));
}

TEST_F(LargeStage, IsReachedByItsTitleAndByTheKey) {
  ui.click("strip/title/values");
  EXPECT_EQ(ui.view().look.large, Stage::values);
  ui.click("large/stage/contexts");
  EXPECT_TRUE(ui.has("large/contexts"));
  ui.click("large/back");
  EXPECT_EQ(ui.view().look.large, std::nullopt);
  ui.look([&](auto& v) { v.selection.pinned = CellRef{Stage::output, 0, 0, 0}; });
  ui.key(Key::l);
  EXPECT_EQ(ui.view().look.large, Stage::output);
  ui.key(Key::l);
  EXPECT_EQ(ui.view().look.large, std::nullopt);
}

TEST_F(LargeStage, ShowsTheRowAndTheColumnOfThePinnedCell) {
  ui.look([&](auto& v) { v.look.large = Stage::weights; });
  ui.move_to("large/fit");
  EXPECT_FALSE(ui.has("large/row"));
  ui.look([&](auto& v) { v.selection.pinned = CellRef{Stage::weights, 0, 4, 2}; });
  EXPECT_TRUE(ui.has("large/row"));
  EXPECT_TRUE(ui.has("large/column"));
  EXPECT_FALSE(ui.has("large/overview")) << "all of it is there already";
  ui.key(Key::plus);
  EXPECT_TRUE(ui.has("large/overview"));
  ui.key(Key::f);
  EXPECT_TRUE(ui.view().look.zoomed.empty());
}

TEST_F(LargeStage, OpensAMenuByARightClickOnItsTitleThatFoldsIt) {
  ui.right_click("strip/title/scaled_scores");
  ui.click("menu/stage/fold");
  EXPECT_TRUE(ui.view().look.folded.contains(Stage::scaled_scores));
  EXPECT_FALSE(ui.has("strip/scaled_scores"));
  ui.click("strip/unfold/scaled_scores");
  EXPECT_TRUE(ui.has("strip/scaled_scores"));
}

TEST_F(LargeStage, HasRowSumsAndEntropyBesideItOnRequest) {
  EXPECT_FALSE(ui.has("strip/weights/gutter/sum"));
  ui.key(Key::g);
  EXPECT_TRUE(ui.has("strip/weights/gutter/sum"));
  EXPECT_TRUE(ui.has("strip/weights/gutter/bits"));
  EXPECT_TRUE(ui.has("strip/scores/gutter/sum"));
  EXPECT_FALSE(ui.has("strip/scores/gutter/bits")) << "scores are no distribution";
  EXPECT_FALSE(ui.has("strip/values/gutter/sum"));
}

TEST_F(LargeStage, CellsAreWalkedOverWithShiftAndTheArrows) {
  const support::Modifiers shift{.shift = true};
  ui.key(Key::down, shift);
  EXPECT_EQ(ui.view().selection.pinned, (CellRef{Stage::weights, 0, 0, 0}));
  ui.key(Key::down, shift);
  ui.key(Key::down, shift);
  ui.key(Key::right, shift);
  EXPECT_EQ(ui.view().selection.pinned, (CellRef{Stage::weights, 0, 2, 1}));
  ui.key(Key::left, shift);
  ui.key(Key::left, shift);
  ui.key(Key::up, shift);
  EXPECT_EQ(ui.view().selection.pinned, (CellRef{Stage::weights, 0, 1, 0})) << "it stops at the edge";
  ui.key(Key::page_up, shift);
  EXPECT_EQ(ui.view().selection.pinned, (CellRef{Stage::masked_scores, 0, 1, 0}));
}

TEST_F(LargeStage, ComesAfterTheWalkToACellOutsideOfTheZoomedPart) {
  ui.look([&](auto& v) { v.look.large = Stage::weights; });
  ui.look([&](auto& v) { v.selection.pinned = CellRef{Stage::weights, 0, 0, 0}; });
  ui.key(Key::plus);
  ui.key(Key::plus);
  const auto part = [&] { return ui.view().look.zoomed.at({6, 6}); };
  ASSERT_LT(part().bottom, 5);
  for (int k = 0; k < 5; ++k) ui.key(Key::down, {.shift = true});
  EXPECT_EQ(ui.view().selection.pinned->row, 5u);
  EXPECT_NEAR(part().bottom, 6, 1e-9);
}

using namespace core::attention;
using gui::Panels;

/// Returns a model of two heads of four columns that share one KV head, with six tokens.
Model rotary_model() {
  support::Random random(11);
  Model m;
  m.sequences = {{{"a", "b", "c", "d", "e", "f"}, support::matrix(random, 6, 5)}};
  Projections p;
  p.query.weight = support::matrix(random, 5, 8);
  p.key.weight = support::matrix(random, 5, 4), p.value.weight = support::matrix(random, 5, 4);
  m.projections = p;
  m.n_heads = 2, m.n_kv_heads = 1;
  m.additions.positions.rotary.emplace();
  return m;
}

struct PositionsThatTurn : testing::Test {
  Panels ui{gui::draw_strip};

  void SetUp() override {
    ui.show(rotary_model());
    ui.look([](app::View& v) {
      v.look.head = 1, v.look.large = Stage::rotated_queries;
      v.selection.pinned = app::CellRef{Stage::scores, 1, 4, 2};
    });
    ui.run(3);
  }
  /// Returns the tip of the query's arrow of a pair from the center, in pixels to the right and up.
  arma::vec2 tip(int pair) const {
    const ImVec2 at = ui.center("positions/query_tip/" + std::to_string(pair)),
                 middle = ui.center("positions/circle/" + std::to_string(pair));
    return {at.x - middle.x, middle.y - at.y};
  }
  arma::rowvec rotated(const Model& m) const { return attend(m, 0).at(Stage::rotated_queries, 1).row(4); }
};

TEST_F(PositionsThatTurn, ShowArrowsThatPointWhereTheRotatedNumbersDo) {
  EXPECT_TRUE(ui.has("positions/sum"));
  EXPECT_FALSE(ui.has("positions/circle/2")) << "four columns are two pairs";
  const arma::rowvec numbers = rotated(ui.model());
  for (const int pair : {0, 1}) {
    const arma::vec2 at = tip(pair);
    const double x = numbers(static_cast<arma::uword>(pair)), y = numbers(static_cast<arma::uword>(pair + 2));
    EXPECT_NEAR(std::remainder(std::atan2(at(1), at(0)) - std::atan2(y, x), 2 * std::acos(-1.0)), 0, 0.1);
  }
}

TEST_F(PositionsThatTurn, AreWhereARotatedStageIsShownAlone) {
  ui.look([](app::View& v) { v.look.large.reset(); });
  EXPECT_FALSE(ui.has("positions/sum"));
  ui.look([](app::View& v) { v.look.large = Stage::rotated_keys; });
  EXPECT_TRUE(ui.has("positions/sum"));
  ui.edit(core::editing::SetPositions{});
  EXPECT_FALSE(ui.has("positions/sum")) << "the stage is gone";
}

TEST_F(PositionsThatTurn, SlidersTurnTheArrowsAndChangeNoNumber) {
  const Model before = ui.model();
  const arma::vec2 there = tip(0);
  ui.drag("positions/query_at", 40, 0);
  EXPECT_GT(arma::norm(tip(0) - there), 3);
  EXPECT_NEAR(arma::norm(tip(0)), arma::norm(there), 2) << "a turn keeps the length";
  EXPECT_EQ(ui.model(), before);
  ui.click("positions/reset");
  EXPECT_NEAR(arma::norm(tip(0) - there), 0, 0.01);
}

TEST_F(PositionsThatTurn, ADraggedArrowTypesItsTwoNumbersOverInOneStepOfUndo) {
  const Model before = ui.model();
  ui.click("positions/query_tip/0");
  EXPECT_EQ(ui.model(), before) << "a click changes nothing";
  const arma::vec2 there = tip(0);
  const double scale = std::hypot(rotated(before)(0), rotated(before)(2)) / arma::norm(there);
  ui.drag("positions/query_tip/0", 12, -9);
  ASSERT_EQ(ui.model().given.cells.size(), 2u);
  EXPECT_EQ(ui.model().given.cells[0].place, (GivenCellAddress{Stage::queries, 0, 1, 4, 0}));
  EXPECT_EQ(ui.model().given.cells[1].place, (GivenCellAddress{Stage::queries, 0, 1, 4, 2}));
  EXPECT_NEAR(rotated(ui.model())(0), (there(0) + 12) * scale, 3 * scale)
      << "it points to where the mouse was";
  EXPECT_NEAR(rotated(ui.model())(2), (there(1) + 9) * scale, 3 * scale);
  ui.store.dispatch(app::Undo{});
  EXPECT_EQ(ui.model(), before);
}

TEST_F(PositionsThatTurn, ADraggedKeyIsThatOfItsGroup) {
  ui.drag("positions/key_tip/1", -10, 10);
  ASSERT_EQ(ui.model().given.cells.size(), 2u);
  EXPECT_EQ(ui.model().given.cells[0].place, (GivenCellAddress{Stage::keys, 0, 0, 2, 1}));
}

TEST_F(PositionsThatTurn, TakeQueryAndKeyByTheirIndex) {
  ui.click("positions/query");
  ui.type("3");
  ui.key(app::Key::enter);
  ASSERT_TRUE(ui.view().selection.pinned);
  EXPECT_EQ(*ui.view().selection.pinned, (app::CellRef{Stage::scores, 1, 3, 2}));
  ui.click("positions/key");
  ui.type("9");
  ui.key(app::Key::enter);
  EXPECT_THAT(ui.message().text, testing::HasSubstr("key: expected a number below 6, found \"9\""));
  EXPECT_EQ(ui.view().selection.pinned->column, 2u);
}

}  // namespace
