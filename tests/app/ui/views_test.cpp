// The views of heads and of tokens with the inspector; wrapped texts.
#include <gmock/gmock.h>

#include <set>

#include "app/session/remembered.hpp"
#include "app/ui/panels/bars/bars.hpp"
#include "app/ui/panels/heads/heads_panel.hpp"
#include "app/ui/panels/inspector/inspector_panel.hpp"
#include "app/ui/panels/layers/layers_panel.hpp"
#include "app/ui/panels/tokens/tokens_panel.hpp"
#include "core/editing/presets.hpp"
#include "core/graph/attend.hpp"
#include "tests/support/program.hpp"
#include "tests/support/random_model.hpp"

namespace {

using app::Tab;
using core::attention::HeadMetric;
using core::attention::Stage;
using gui::Panels;

/// Draws the tabs above the view of heads or of tokens, and the inspector at the right.
void draw_view_and_inspector(const app::Frame& frame) {
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  const auto draw = [&](const char* name, ImVec2 min, ImVec2 max, auto panel) {
    support::in_window(name, min, max, [&] { panel(frame); });
  };
  draw("bar", {0, 0}, {size.x - 400, 60}, app::panels::draw_view_bar);
  draw("inspector", {size.x - 400, 0}, size, app::panels::draw_inspector);
  if (frame.displayed.look.tab == Tab::heads)
    draw("heads", {0, 60}, {size.x - 400, size.y}, app::panels::draw_heads);
  if (frame.displayed.look.tab == Tab::tokens)
    draw("tokens", {0, 60}, {size.x - 400, size.y}, app::panels::draw_tokens);
}

/// Returns a model with uniform weights in head 0; in head 1 each position attends to the previous one.
core::attention::Model uniform_and_previous_heads() {
  const std::size_t n = 6;
  core::attention::Model m;
  m.sequences = {{core::attention::numbered_tokens(n), arma::mat(n, n, arma::fill::eye)}};
  core::attention::Projections p;
  arma::mat query(n, 2 * n, arma::fill::zeros), key(n, 2 * n, arma::fill::zeros);
  for (std::size_t i = 1; i < n; ++i) query(i, n + i - 1) = 30;
  for (std::size_t i = 0; i < n; ++i) key(i, n + i) = 1;
  p.query.weight = query, p.key.weight = key, p.value.weight = key;
  m.projections = p;
  m.n_heads = 2;
  return m;
}

struct HeadsPanel : testing::Test {
  Panels ui{draw_view_and_inspector};

  void SetUp() override {
    ui.show(uniform_and_previous_heads());
    ui.look([&](auto& v) { v.look.tab = Tab::heads; });
  }
  /// Returns the mean weight on the previous token, as displayed under a head.
  std::string previous_figure(std::size_t head) const {
    const auto trace = core::attention::attend(ui.model(), 0);
    const auto facts =
        core::attention::head_statistics(trace.at(Stage::weights, head), ui.model().sequences[0].tokens);
    return app::panels::figure_text(
        HeadMetric::previous, facts.*core::attention::info(HeadMetric::previous).value, ui.model().n_keys());
  }
  bool is_before(int a, int b) const {
    const ImVec2 x = ui.center("heads/" + std::to_string(a)), y = ui.center("heads/" + std::to_string(b));
    return x.y < y.y - 1 || (std::abs(x.y - y.y) <= 1 && x.x < y.x);
  }
};

TEST_F(HeadsPanel, PutsTheHeadOfThePreviousTokenFirstWhenSortedByIt) {
  EXPECT_TRUE(is_before(0, 1));
  ui.click("view/order");
  ui.click("view/order/previous");
  EXPECT_EQ(ui.view().look.heads_order, HeadMetric::previous);
  EXPECT_TRUE(is_before(1, 0));
  EXPECT_EQ(previous_figure(1), "≈1") << "the softmax leaves a little to the others";
  EXPECT_NE(previous_figure(0), "≈1");
  ui.look([&](auto& v) {
    v.look.heads_order = HeadMetric::itself;
  });  // 1/6 for head 1, mean of 1, 1/2 … 1/6 for head 0
  EXPECT_TRUE(is_before(0, 1));
  ui.look([&](auto& v) { v.look.heads_order = HeadMetric::entropy; });
  EXPECT_TRUE(is_before(1, 0)) << "the least spread comes first";
}

TEST_F(HeadsPanel, ShowsFactsOfTheHoveredHeadUntilACellIsPinned) {
  ui.move_to("heads/1");
  EXPECT_EQ(ui.view().selection.hovered_head, 1u);
  EXPECT_TRUE(ui.has("inspector/figure/previous"));
  EXPECT_TRUE(ui.has("inspector/likeness"));
  ui.click("heads/1");
  ASSERT_TRUE(ui.view().selection.pinned);
  EXPECT_FALSE(ui.has("inspector/figure/previous"));
  EXPECT_TRUE(ui.has("inspector/value"));
}

/// Returns a model of n heads of one column each, with six tokens.
core::attention::Model of_heads(std::size_t n) {
  support::Random random(9);
  return support::model(random, 6, 4, n, n);
}

TEST_F(HeadsPanel, UsesItsRoomForAnyNumberOfHeads) {
  for (const std::size_t n : {2u, 12u, 24u, 32u, 144u}) {
    ui.show(of_heads(n));
    ui.run(3);
    std::set<float> columns;
    float right = 0, bottom = 0;
    for (std::size_t h = 0; h < n; ++h) {
      const auto picture = ui.rect("heads/" + std::to_string(h));
      columns.insert(picture.min.x);
      right = std::max(right, picture.max.x), bottom = std::max(bottom, picture.max.y);
      EXPECT_GE(picture.max.x - picture.min.x, 60) << n << " heads";
      EXPECT_TRUE(ui.has("heads/name/" + std::to_string(h)));
    }
    EXPECT_GE(columns.size(), std::min<std::size_t>(n, n < 12 ? 2 : 4)) << n << " heads";
    EXPECT_TRUE(right > 1200 * 0.7f || bottom > 1000 * 0.8f) << n << " heads leave room";
    EXPECT_TRUE(ui.has("heads/bar")) << n << " heads";
  }
}

TEST_F(HeadsPanel, ChoosesAHeadByItsNameAndFromTheLikeness) {
  ui.click("heads/name/1");
  EXPECT_EQ(ui.view().look.head, 1u);
  ui.move_to("view/order");
  ui.look([&](auto& v) { v.selection.hovered_head.reset(); });  // the window does so in every frame
  ui.click("inspector/most similar");
  EXPECT_EQ(ui.view().look.head, 0u);
}

TEST_F(HeadsPanel, WorksOutTheLikenessOfVeryManyNumbersOnlyWhenAsked) {
  support::Random random(4);
  ui.show(support::model(random, 256, 4, 24, 12));
  EXPECT_FALSE(ui.has("inspector/likeness"));
  ui.click("inspector/work out likeness");
  while (ui.is_working()) ui.run();
  ui.run();
  EXPECT_TRUE(ui.has("inspector/likeness"));
  ui.change([&](auto& m) { m.sequences[0].embeddings.edit()(0, 0) += 1; });
  EXPECT_FALSE(ui.has("inspector/likeness")) << "other numbers, another question";
}

using app::Key;

struct TokensPanel : testing::Test {
  Panels ui{draw_view_and_inspector};

  void SetUp() override {
    ui.look([&](auto& v) { v.look.tab = Tab::tokens; });
  }
};

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
  const int everything = ui.vertices();
  ui.look([&](auto& v) { v.look.tokens.hide_below = 0.5; });
  const int strong = ui.vertices();
  ui.click("tokens/none");
  ui.move_to("tabs/Stages");
  EXPECT_LT(strong, everything);
  EXPECT_LT(ui.vertices(), strong);
}

TEST_F(TokensPanel, ListsTheTopKeysOfEachHeadAndLeadsToTheWeight) {
  ui.look([&](auto& v) { v.look.tokens.pinned_query = 1; });
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
  EXPECT_FALSE(ui.has("tokens/query/511"));
  ui.key(Key::up);
  ui.run(4);
  EXPECT_EQ(ui.view().look.tokens.pinned_query, 511u);
  EXPECT_TRUE(ui.has("tokens/query/511"));
  EXPECT_FALSE(ui.has("tokens/query/0"));
}

TEST_F(TokensPanel, ShowsOneTokenAndRowsThatMaySeeNothing) {
  ui.show(core::editing::find_preset("003-dropout")->make());
  ui.look([&](auto& v) { v.look.tokens.pinned_query = 0; });
  EXPECT_TRUE(ui.has("tokens/key/0"));
  ui.show(core::editing::default_preset().make());
  ui.change([&](auto& m) { m.mask.cells = {{0, 0, false}}; });
  EXPECT_TRUE(ui.has("tokens/query/0"));
  EXPECT_FALSE(ui.has("inspector/weight/0/0")) << "its weights are 0/0";
}

TEST(ViewText, KeepsWhatTheTokenViewShows) {
  app::View view;
  view.look.tab = Tab::tokens;
  view.look.heads_order = core::attention::HeadMetric::two_or_three_back;
  view.look.tokens.pinned_query = 3;
  view.look.tokens.hide_below = 0.125;
  view.look.tokens.silent_heads = {0, 7};
  app::View again;
  app::restore_view(app::view_text(view), again);
  EXPECT_EQ(again.look.tab, Tab::tokens);
  EXPECT_EQ(again.look.heads_order, view.look.heads_order);
  EXPECT_EQ(again.look.tokens, view.look.tokens);
  app::restore_view(R"({"tab": "elsewhere", "hide_below": 7, "heads_order": 3})", again);
  EXPECT_EQ(again.look.tab, Tab::tokens);
  EXPECT_EQ(again.look.tokens, view.look.tokens);
}

using app::panels::unwrap_lines;
using app::panels::wrap_lines;
using app::panels::wrapped_position;

bool ten_letters(const std::string& line) {
  return line.size() <= 10;
}

TEST(WrappedText, EndsLinesAtBlanksAndComesBack) {
  EXPECT_EQ(wrap_lines("one two three four", ten_letters), "one two\nthree four");
  EXPECT_EQ(wrap_lines("a\nb", ten_letters), "a\r\nb");
  EXPECT_EQ(wrap_lines("one two three\nfour five six seven", ten_letters),
            "one two\nthree\r\nfour five\nsix seven");
  EXPECT_EQ(wrap_lines("extraordinarily long", ten_letters), "extraordinarily\nlong");
  for (const char* text : {"", " ", "  two  blanks  everywhere  ", "one two three four\n\nfive", "\n",
                           "extraordinarily long words have no room", "ends with a blank "})
    EXPECT_EQ(unwrap_lines(wrap_lines(text, ten_letters)), text);
}

TEST(WrappedText, KeepsPlaces) {
  const std::string text = "one two three\nfour five six", lines = wrap_lines(text, ten_letters);
  for (std::size_t k = 0; k <= text.size(); ++k) {
    const std::size_t place = wrapped_position(lines, k);
    EXPECT_EQ(unwrap_lines(lines.substr(0, place)), text.substr(0, k)) << k;
  }
}

TEST(WrappedText, ReadsATypedEndOfLineAsOne) {
  EXPECT_EQ(unwrap_lines("one\rtwo"), "one\ntwo") << "as the field has it before it is wrapped again";
}

}  // namespace
