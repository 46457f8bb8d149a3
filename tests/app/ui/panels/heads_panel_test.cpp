#include "app/ui/panels/heads/heads_panel.hpp"

#include <gtest/gtest.h>

#include <set>

#include "app/ui/panels/bars/view_bar.hpp"
#include "app/ui/panels/inspector/inspector_panel.hpp"
#include "core/graph/attend.hpp"
#include "tests/support/panels.hpp"
#include "tests/support/random_model.hpp"

namespace {

using app::Tab;
using core::attention::HeadFigure;
using gui::Panels;

void draw_heads_and_inspector(const app::Frame& frame) {
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  const auto draw = [&](const char* name, ImVec2 min, ImVec2 max, auto panel) {
    support::in_window(name, min, max, [&] { panel(frame); });
  };
  draw("bar", {0, 0}, {size.x - 400, 60}, app::panels::draw_view_bar);
  draw("heads", {0, 60}, {size.x - 400, size.y}, app::panels::draw_heads);
  draw("inspector", {size.x - 400, 0}, size, app::panels::draw_inspector);
}

/// Uniform weights in head 0; in head 1 each position asks for the one before it.
core::attention::Model spread_and_previous() {
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
  Panels ui{draw_heads_and_inspector};

  void SetUp() override {
    ui.show(spread_and_previous());
    ui.look([&](auto& v) { v.look.tab = Tab::heads; });
    ui.run();
  }
  /// The mean weight on the previous token, as it stands under a head.
  std::string previous_figure(std::size_t head) const {
    const auto trace = core::attention::attend(ui.model(), 0);
    const auto facts = core::attention::head_facts(trace.heads[head].weights, ui.model().sequences[0].tokens);
    return app::panels::figure_text(
        HeadFigure::previous, facts.*core::attention::info(HeadFigure::previous).value, ui.model().n_keys());
  }
  bool is_before(int a, int b) const {
    const ImVec2 x = ui.centre("heads/" + std::to_string(a)), y = ui.centre("heads/" + std::to_string(b));
    return x.y < y.y - 1 || (std::abs(x.y - y.y) <= 1 && x.x < y.x);
  }
};

TEST_F(HeadsPanel, PutsTheHeadOfThePreviousTokenFirstWhenSortedByIt) {
  EXPECT_TRUE(is_before(0, 1));
  ui.click("view/order");
  ui.run();
  ui.click("view/order/previous");
  ui.run();
  EXPECT_EQ(ui.view().look.heads_order, HeadFigure::previous);
  EXPECT_TRUE(is_before(1, 0));
  EXPECT_EQ(previous_figure(1), "≈1") << "the softmax leaves a little to the others";
  EXPECT_NE(previous_figure(0), "≈1");
  ui.look([&](auto& v) {
    v.look.heads_order = HeadFigure::itself;
  });  // 1/6 for the other, mean of 1, 1/2 … 1/6 for the spread one
  ui.run();
  EXPECT_TRUE(is_before(0, 1));
  ui.look([&](auto& v) { v.look.heads_order = HeadFigure::entropy; });
  ui.run();
  EXPECT_TRUE(is_before(1, 0)) << "the least spread comes first";
}

TEST_F(HeadsPanel, ShowsFactsOfTheHoveredHeadUntilACellIsPinned) {
  ui.move_to("heads/1");
  EXPECT_EQ(ui.view().selection.hovered_head, 1u);
  EXPECT_TRUE(ui.has("inspector/figure/previous"));
  EXPECT_TRUE(ui.has("inspector/likeness"));
  ui.click("heads/1");
  ui.run();
  ASSERT_TRUE(ui.view().selection.pinned);
  EXPECT_FALSE(ui.has("inspector/figure/previous"));
  EXPECT_TRUE(ui.has("inspector/value"));
}

/// A model of so many heads of one column each, over six tokens.
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
  ui.run();
  ui.click("inspector/most alike");
  EXPECT_EQ(ui.view().look.head, 0u);
}

TEST_F(HeadsPanel, WorksOutTheLikenessOfVeryManyNumbersOnlyWhenAsked) {
  support::Random random(4);
  ui.show(support::model(random, 256, 4, 24, 12));
  ui.run();
  EXPECT_FALSE(ui.has("inspector/likeness"));
  ui.click("inspector/work out likeness");
  while (ui.is_working()) ui.run();
  ui.run();
  EXPECT_TRUE(ui.has("inspector/likeness"));
  ui.change([&](auto& m) { m.sequences[0].embeddings.edit()(0, 0) += 1; });
  ui.run();
  EXPECT_FALSE(ui.has("inspector/likeness")) << "other numbers, another question";
}

TEST_F(HeadsPanel, OffersTheColorsOfSignedStagesAndOfWeights) {
  EXPECT_TRUE(ui.has("view/range"));
  ui.look([&](auto& v) { v.look.heads_stage = app::Stage::scores; });
  ui.run();
  EXPECT_TRUE(ui.has("view/range"));
}

}  // namespace
