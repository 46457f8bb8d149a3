#include "app/ui/panels/tokens/tokens_panel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/session/remembered.hpp"
#include "app/ui/panels/bars/view_bar.hpp"
#include "app/ui/panels/inspector/inspector_panel.hpp"
#include "core/editing/presets.hpp"
#include "tests/support/panels.hpp"
#include "tests/support/random_model.hpp"

namespace {

using app::Key;
using app::Tab;
using core::attention::Stage;
using gui::Panels;

/// The tabs above the token view, and the inspector at the right.
void draw_tokens_and_inspector(const app::Frame& frame) {
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  const auto draw = [&](const char* name, ImVec2 min, ImVec2 max, auto panel) {
    support::in_window(name, min, max, [&] { panel(frame); });
  };
  draw("bar", {0, 0}, {size.x - 400, 60}, app::panels::draw_view_bar);
  if (frame.shown.look.tab == Tab::tokens)
    draw("tokens", {0, 60}, {size.x - 400, size.y}, app::panels::draw_tokens);
  draw("inspector", {size.x - 400, 0}, size, app::panels::draw_inspector);
}

struct TokensPanel : testing::Test {
  Panels ui{draw_tokens_and_inspector};

  void SetUp() override {
    ui.look([&](auto& v) { v.look.tab = Tab::tokens; });
    ui.run();
  }
  bool off_screen(const std::string& name) const { return !ui.has(name); }
};

TEST_F(TokensPanel, IsReachedByItsTab) {
  ui.look([&](auto& v) { v.look.tab = Tab::stages; });
  ui.run();
  EXPECT_FALSE(ui.has("tokens/query/0"));
  ui.click("tabs/Tokens");
  ui.run();
  EXPECT_EQ(ui.view().look.tab, Tab::tokens);
  EXPECT_TRUE(ui.has("tokens/query/5"));
  EXPECT_TRUE(ui.has("tokens/key/5"));
}

TEST_F(TokensPanel, PreviewsAQueryAndPinsItOnAClick) {
  ui.move_to("tokens/query/2");
  EXPECT_EQ(ui.view().look.tokens.hovered_query, 2u);
  EXPECT_EQ(ui.view().look.tokens.pinned_query, std::nullopt);
  ui.click("tokens/query/2");
  EXPECT_EQ(ui.view().look.tokens.pinned_query, 2u);
  ui.click("tokens/query/2");
  EXPECT_EQ(ui.view().look.tokens.pinned_query, std::nullopt);
}

TEST_F(TokensPanel, MovesThePinnedQueryByTheArrowKeys) {
  ui.key(Key::down);
  EXPECT_EQ(ui.view().look.tokens.pinned_query, 0u);
  ui.key(Key::down);
  ui.key(Key::down);
  EXPECT_EQ(ui.view().look.tokens.pinned_query, 2u);
  ui.key(Key::up);
  EXPECT_EQ(ui.view().look.tokens.pinned_query, 1u);
  for (int press = 0; press < 9; ++press) ui.key(Key::down);
  EXPECT_EQ(ui.view().look.tokens.pinned_query, 5u) << "there are six tokens";
  ui.key(Key::escape);
  EXPECT_EQ(ui.view().look.tokens.pinned_query, std::nullopt);
  ui.look([&](auto& v) { v.look.tab = Tab::stages; });
  ui.key(Key::down);
  EXPECT_EQ(ui.view().look.tokens.pinned_query, std::nullopt) << "the strip has no pinned query";
}

TEST_F(TokensPanel, SwitchesHeadsByChipsAndDigits) {
  ui.click("tokens/head/1");
  EXPECT_THAT(ui.view().look.tokens.silent_heads, testing::ElementsAre(1));
  ui.key(Key::digit_1);
  EXPECT_THAT(ui.view().look.tokens.silent_heads, testing::ElementsAre(0, 1));
  ui.key(Key::digit_2);
  EXPECT_THAT(ui.view().look.tokens.silent_heads, testing::ElementsAre(0));
  ui.click("tokens/none");
  EXPECT_THAT(ui.view().look.tokens.silent_heads, testing::ElementsAre(0, 1));
  ui.click("tokens/all");
  EXPECT_TRUE(ui.view().look.tokens.silent_heads.empty());
  ui.key(Key::bracket_right);
  EXPECT_THAT(ui.view().look.tokens.silent_heads, testing::ElementsAre(0)) << "the next head, 1, alone";
}

TEST_F(TokensPanel, DrawsLessWhenTheThresholdIsHighOrNoHeadIsOn) {
  ui.look([&](auto& v) { v.look.tokens.hide_below = 0; });
  ui.run();
  const int everything = ui.vertices();
  ui.look([&](auto& v) { v.look.tokens.hide_below = 0.5; });
  ui.run();
  const int strong = ui.vertices();
  ui.click("tokens/none");
  ui.move_to("tabs/Stages");
  ui.run();
  EXPECT_LT(strong, everything);
  EXPECT_LT(ui.vertices(), strong);
}

TEST_F(TokensPanel, HidesMoreAsTheSliderMovesRight) {
  const double before = ui.view().look.tokens.hide_below;
  ui.drag("view/hide_below", 50, 0);
  EXPECT_GT(ui.view().look.tokens.hide_below, before);
  EXPECT_LE(ui.view().look.tokens.hide_below, 1);
}

TEST_F(TokensPanel, ListsTheTopKeysOfEachHeadAndLeadsToTheWeight) {
  ui.look([&](auto& v) { v.look.tokens.pinned_query = 1; });
  ui.run();
  EXPECT_TRUE(ui.has("inspector/weight/0/0"));
  EXPECT_TRUE(ui.has("inspector/weight/1/1"));
  EXPECT_FALSE(ui.has("inspector/weight/0/2")) << "query 1 may not see key 2";
  ui.click("inspector/weight/1/0");
  EXPECT_EQ(ui.view().look.tab, Tab::stages);
  EXPECT_EQ(ui.view().selection.pinned, (app::CellRef{Stage::weights, 1, 1, 0}));
}

TEST_F(TokensPanel, ScrollsToTheQueryThatTheKeyboardPins) {
  support::Random random(2);
  ui.show(support::model(random, 512, 2, 4, 2));
  ui.run(4);
  EXPECT_TRUE(off_screen("tokens/query/511"));
  ui.key(Key::up);
  ui.run(4);
  EXPECT_EQ(ui.view().look.tokens.pinned_query, 511u);
  EXPECT_TRUE(ui.has("tokens/query/511"));
  EXPECT_TRUE(off_screen("tokens/query/0"));
}

TEST_F(TokensPanel, ShowsOneTokenAndRowsThatMaySeeNothing) {
  ui.show(core::editing::find_preset("003-dropout")->make());
  ui.look([&](auto& v) { v.look.tokens.pinned_query = 0; });
  ui.run();
  EXPECT_TRUE(ui.has("tokens/key/0"));
  ui.show(core::editing::default_preset().make());
  ui.change([&](auto& m) { m.mask.cells = {{0, 0, false}}; });
  ui.run();
  EXPECT_TRUE(ui.has("tokens/query/0"));
  EXPECT_FALSE(ui.has("inspector/weight/0/0")) << "its weights are 0/0";
}

TEST(ViewText, KeepsWhatTheTokenViewShows) {
  app::View view;
  view.look.tab = Tab::tokens;
  view.look.heads_order = core::attention::HeadFigure::two_or_three_back;
  view.look.tokens.pinned_query = 3;
  view.look.tokens.hide_below = 0.125;
  view.look.tokens.silent_heads = {0, 7};
  app::View again;
  app::recall_view(app::view_text(view), again);
  EXPECT_EQ(again.look.tab, Tab::tokens);
  EXPECT_EQ(again.look.heads_order, view.look.heads_order);
  EXPECT_EQ(again.look.tokens, view.look.tokens);
  app::recall_view(R"({"tab": "elsewhere", "hide_below": 7, "heads_order": 3})", again);
  EXPECT_EQ(again.look.tab, Tab::tokens);
  EXPECT_EQ(again.look.tokens, view.look.tokens);
}

}  // namespace
