// What is looked at: hovering, pinning, themes, scale, regions, the sheet of keys.
#include <gmock/gmock.h>

#include "tests/walk/walk.hpp"

namespace walk {
namespace {

using app::CellRef;

struct Looks : Program {
  void point_at(std::size_t row, std::size_t column) { ui.play(support::move_to(cell(row, column))); }
  void click_cell(std::size_t row, std::size_t column) { ui.play(support::click(cell(row, column))); }
  /// The middle of a cell of the weights, six by six.
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
  ASSERT_GT(scores.max.x - scores.min.x, scaled.max.x - scaled.min.x) << "13.166 needs no wider cells";
  EXPECT_EQ(scores.min.y, scaled.min.y);
  EXPECT_EQ(scores.min.y, ui.rect("strip/masked_scores").min.y);
}

TEST_F(Looks, HoveringACellPutsItIntoTheInspectorAndLeavingTakesItOut) {
  EXPECT_FALSE(ui.has("inspector/value"));
  point_at(3, 1);
  EXPECT_EQ(ui.store.view().selection.hovered, (CellRef{Stage::weights, 0, 3, 1}));
  EXPECT_TRUE(ui.has("inspector/value"));
  ui.move_to("region/status");
  EXPECT_FALSE(ui.store.view().selection.hovered.has_value());
  EXPECT_FALSE(ui.has("inspector/value"));
}

TEST_F(Looks, HoveringShowsATooltipBesideThePointer) {
  const ImVec2 beside(cell(3, 1).x + 40, cell(3, 1).y + 30);
  const auto before = ui.pixel(beside);
  point_at(3, 1);
  EXPECT_NE(ui.pixel(beside), before);
}

TEST_F(Looks, AClickPinsAndASecondReleases) {
  click_cell(4, 2);
  EXPECT_EQ(ui.store.view().selection.pinned, (CellRef{Stage::weights, 0, 4, 2}));
  ui.move_to("region/status");
  EXPECT_TRUE(ui.has("inspector/value")) << "it stays when the mouse leaves";
  click_cell(4, 2);
  EXPECT_FALSE(ui.store.view().selection.pinned.has_value());
}

TEST_F(Looks, EscapeReleasesThePin) {
  click_cell(4, 2);
  ui.key(Key::escape);
  EXPECT_FALSE(ui.store.view().selection.pinned.has_value());
}

TEST_F(Looks, APinDimsWhatLiesOffItsRowAndColumn) {
  const auto before = ui.cell_color("strip/weights", 6, 6, 2, 0);
  click_cell(4, 3);
  ui.move_to("region/status");
  EXPECT_NE(ui.cell_color("strip/weights", 6, 6, 2, 0), before);
  ui.key(Key::escape);
  ui.run();
  EXPECT_EQ(ui.cell_color("strip/weights", 6, 6, 2, 0), before);
}

TEST_F(Looks, ThemesSwitchTheGroundAndTheColorsOfTheData) {
  const ImVec2 corner(ui.landmarks().find("region/stages")->max.x - 30,
                      ui.landmarks().find("region/stages")->max.y - 4);
  EXPECT_TRUE(alike(ui.pixel(corner), app::palette(true).ground.back));
  ui.key(Key::t);
  ui.run();
  EXPECT_FALSE(ui.store.view().settings.dark);
  EXPECT_TRUE(alike(ui.pixel(corner), app::palette(false).ground.back));
  EXPECT_TRUE(alike(ui.cell_color("strip/weights", 6, 6, 5, 0),
                    app::render::color_at(app::render::ColorMap::weights, false, ui.weight(5, 0))));
}

TEST_F(Looks, ScaleEnlargesEverythingAndStaysInTheWindow) {
  const auto before = ui.landmarks().find("model/causal").value();
  ui.store.dispatch(app::ChangeView{[](app::View& v) { v.settings.scale = 2; }});
  ui.run(4);
  const auto after = ui.landmarks().find("model/causal").value();
  EXPECT_NEAR(after.max.y - after.min.y, 2 * (before.max.y - before.min.y), 2);
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

TEST_F(Looks, TheHeadsTabShowsEveryHeadOfOneStage) {
  ui.click("tabs/Heads");
  EXPECT_TRUE(ui.has("heads/0"));
  EXPECT_TRUE(ui.has("heads/1"));
  ui.double_click("heads/name/1");
  EXPECT_EQ(ui.store.view().look.tab, app::Tab::stages);
  EXPECT_EQ(ui.store.view().look.head, 1u);
}

TEST_F(Looks, F1ShowsTheKeysAndEscapeClosesThem) {
  ui.key(Key::f1);
  ui.run();
  EXPECT_EQ(ui.store.view().forms.dialog, app::Dialog::keys);
  EXPECT_TRUE(ui.has("dialog/keys/0"));
  ui.key(Key::c);
  EXPECT_TRUE(ui.model().mask.causal) << "keys do nothing behind a dialog";
  ui.key(Key::escape);
  EXPECT_EQ(ui.store.view().forms.dialog, app::Dialog::none);
  EXPECT_FALSE(ui.has("dialog/keys/0"));
  ui.click("model/causal");
  EXPECT_FALSE(ui.model().mask.causal);
}

}  // namespace
}  // namespace walk
