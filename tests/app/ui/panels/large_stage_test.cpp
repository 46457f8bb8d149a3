// One stage alone, folded stages, row sums and entropy, the keys that walk over cells.
#include <gmock/gmock.h>

#include "tests/app/ui/panels/side_panels.hpp"
#include "tests/support/panels.hpp"

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
  ui.run();
  EXPECT_EQ(ui.view().look.large, Stage::scores);
  EXPECT_TRUE(ui.has("large/scores"));
  EXPECT_FALSE(ui.has("strip/scores"));
  ui.key(Key::escape);  // the cell that the first click pinned
  ui.key(Key::escape);
  ui.run();
  EXPECT_EQ(ui.view().look.large, std::nullopt);
  EXPECT_TRUE(ui.has("strip/scores"));
}

TEST_F(LargeStage, IsReachedByItsTitleAndByTheKey) {
  ui.click("strip/title/values");
  ui.run();
  EXPECT_EQ(ui.view().look.large, Stage::values);
  ui.click("large/back");
  EXPECT_EQ(ui.view().look.large, std::nullopt);
  ui.look([&](auto& v) { v.selection.pinned = CellRef{Stage::output, 0, 0, 0}; });
  ui.key(Key::l);
  EXPECT_EQ(ui.view().look.large, Stage::output);
  ui.key(Key::l);
  EXPECT_EQ(ui.view().look.large, std::nullopt);
}

TEST_F(LargeStage, GivesWayToAnotherByItsThumbnail) {
  ui.look([&](auto& v) { v.look.large = Stage::weights; });
  ui.run();
  ui.click("large/stage/contexts");
  ui.run();
  EXPECT_TRUE(ui.has("large/contexts"));
}

TEST_F(LargeStage, ShowsTheRowAndTheColumnOfThePinnedCell) {
  ui.look([&](auto& v) { v.look.large = Stage::weights; });
  ui.run();
  ui.move_to("large/fit");
  EXPECT_FALSE(ui.has("large/row"));
  ui.look([&](auto& v) { v.selection.pinned = CellRef{Stage::weights, 0, 4, 2}; });
  ui.run();
  EXPECT_TRUE(ui.has("large/row"));
  EXPECT_TRUE(ui.has("large/column"));
  EXPECT_FALSE(ui.has("large/overview")) << "all of it is there already";
  ui.key(Key::plus);
  ui.run();
  EXPECT_TRUE(ui.has("large/overview"));
  ui.key(Key::f);
  ui.run();
  EXPECT_TRUE(ui.view().look.zoomed.empty());
}

TEST_F(LargeStage, IsLargerThanInTheStrip) {
  const auto width = [&](const char* name) {
    const auto rect = ui.landmarks().find(name).value();
    return rect.max.x - rect.min.x;
  };
  const float before = width("strip/weights");
  ui.look([&](auto& v) { v.look.large = Stage::weights; });
  ui.run();
  EXPECT_GT(width("large/weights"), 1.5f * before);
}

TEST_F(LargeStage, OpensAMenuByARightClickOnItsTitleThatFoldsIt) {
  ui.right_click("strip/title/scaled_scores");
  ui.run();
  ui.click("menu/stage/fold");
  ui.run();
  EXPECT_TRUE(ui.view().look.folded.contains(Stage::scaled_scores));
  EXPECT_FALSE(ui.has("strip/scaled_scores"));
  ui.click("strip/unfold/scaled_scores");
  ui.run();
  EXPECT_TRUE(ui.has("strip/scaled_scores"));
}

TEST_F(LargeStage, HasRowSumsAndEntropyBesideItOnRequest) {
  EXPECT_FALSE(ui.has("strip/weights/gutter/sum"));
  ui.key(Key::g);
  ui.run();
  EXPECT_TRUE(ui.has("strip/weights/gutter/sum"));
  EXPECT_TRUE(ui.has("strip/weights/gutter/bit"));
  EXPECT_TRUE(ui.has("strip/scores/gutter/sum"));
  EXPECT_FALSE(ui.has("strip/scores/gutter/bit")) << "scores are no distribution";
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
  ui.run();
  ui.key(Key::plus);
  ui.key(Key::plus);
  const auto part = [&] { return ui.view().look.zoomed.at({6, 6}); };
  ASSERT_LT(part().bottom, 5);
  for (int k = 0; k < 5; ++k) ui.key(Key::down, {.shift = true});
  EXPECT_EQ(ui.view().selection.pinned->row, 5u);
  EXPECT_NEAR(part().bottom, 6, 1e-9);
}

}  // namespace
