// Colors of numbers: ranges, locked and typed limits, logarithmic scale, saved settings.
#include <gmock/gmock.h>

#include "app/session/remembered.hpp"
#include "app/ui/panels/bars/bars.hpp"
#include "app/ui/panels/stages/stages_panel.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"
#include "core/graph/attend.hpp"
#include "tests/support/program.hpp"

namespace {

using app::ColorLimits;
using app::ColorRangeRule;
using app::widgets::ColorScale;
using core::attention::Stage;
using core::color::ColorMap;
using gui::Panels;

struct Colors : testing::Test {
  std::map<std::pair<Stage, std::size_t>, ColorLimits> ends;
  Panels ui{[this](const app::Frame& frame) {
    ends = app::widgets::all_color_ends(frame);
    support::in_window("bar", {0, 0}, {1200, 900}, [&] { app::panels::draw_view_bar(frame); });
  }};

  void SetUp() override { ui.run(); }
  ColorLimits of(Stage stage, std::size_t head) {
    ui.run();
    return ends.at({stage, head});
  }
  double largest(Stage stage, std::size_t head) const {
    const auto trace = core::attention::attend(ui.model(), 0);
    return arma::abs(*trace.at(stage, head)).max();
  }
  void open() {
    ui.click("view/range");
    ASSERT_TRUE(ui.has("colours/range"));
  }
};

TEST_F(Colors, EndAtTheLargestNumberOfTheirMatrixStageOrOfAll) {
  EXPECT_DOUBLE_EQ(of(Stage::queries, 0).high, largest(Stage::queries, 0));
  EXPECT_DOUBLE_EQ(of(Stage::queries, 1).high, largest(Stage::queries, 1));
  EXPECT_NE(of(Stage::queries, 0).high, of(Stage::queries, 1).high);
  ui.look([&](auto& v) { v.look.colors.range = ColorRangeRule::stage; });
  const double most = std::max(largest(Stage::queries, 0), largest(Stage::queries, 1));
  EXPECT_DOUBLE_EQ(of(Stage::queries, 0).high, most);
  EXPECT_DOUBLE_EQ(of(Stage::queries, 1).low, -most);
  EXPECT_NE(of(Stage::values, 0).high, most);
  ui.look([&](auto& v) { v.look.colors.range = ColorRangeRule::all_heads; });
  EXPECT_EQ(of(Stage::queries, 0), of(Stage::output, 0));
  EXPECT_GE(of(Stage::queries, 0).high, largest(Stage::embeddings, 0));
  EXPECT_EQ(of(Stage::weights, 0), (ColorLimits{0, 1})) << "weights keep their ends";
}

TEST_F(Colors, TypedEndsHoldForEveryStageOfTheirKind) {
  open();
  ui.look([&](auto& v) { v.look.colors.range = ColorRangeRule::typed; });
  ui.fill_in("colours/values/high", "2.5");
  ui.fill_in("colours/weights/high", "0.25");
  EXPECT_EQ(of(Stage::scores, 0), (ColorLimits{-1, 2.5}));
  EXPECT_EQ(of(Stage::weights, 0), (ColorLimits{0, 0.25}));
}

TEST_F(Colors, RefuseTypedEndsThatAreEqualSwappedOrNoNumbersAndStayAsTheyAre) {
  open();
  ui.look([&](auto& v) { v.look.colors.range = ColorRangeRule::typed; });
  const app::ColorChoice before = ui.view().look.colors;
  for (const auto& [field, text, named] : {std::tuple{"high", "-1", "equal"},
                                           {"high", "-3", "swapped"},
                                           {"low", "warm", "expected a number"},
                                           {"low", "nan", "nan"}}) {
    ui.fill_in(std::string("colours/values/") + field, text);
    EXPECT_TRUE(ui.message().is_error);
    EXPECT_THAT(ui.message().text, testing::AllOf(testing::HasSubstr(named), testing::HasSubstr(text)));
  }
  EXPECT_EQ(ui.view().look.colors, before);
}

TEST_F(Colors, ThatAreLockedStayWhenTheNumbersGrow) {
  const double before = of(Stage::embeddings, 0).high;
  open();
  ui.click("colours/lock");
  ui.show(core::editing::apply(ui.model(),
                               core::editing::SetCell{{core::editing::MatrixName::embeddings, 0}, 0, 0, 40}));
  EXPECT_EQ(of(Stage::embeddings, 0).high, before);
  ui.click("colours/lock");
  EXPECT_EQ(of(Stage::embeddings, 0).high, 40);
}

TEST_F(Colors, OnALogarithmicMeasureBeginFourDecadesBelowTheTopAtMost) {
  ui.look([&](auto& v) { v.look.colors.logarithmic = true; });
  const ColorLimits range = of(Stage::weights, 0);
  EXPECT_EQ(range.high, 1);
  EXPECT_GE(range.least, 1e-4);
  EXPECT_LT(range.least, 1);
}

TEST(ColorScale, PutsEqualRatiosAtEqualDistances) {
  const ColorScale scale{ColorMap::weights, true, {0, 1, 0.001}};
  EXPECT_NEAR(scale.share(0.01) - scale.share(0.001), scale.share(1) - scale.share(0.1), 1e-12);
  EXPECT_NEAR(scale.number_at(scale.share(0.05)), 0.05, 1e-12);
  const ColorScale both{ColorMap::values, true, {-8, 8, 0.5}};
  EXPECT_NEAR(both.share(2), 0.75, 1e-12);
  EXPECT_NEAR(both.share(-2), 0.25, 1e-12);
  EXPECT_NEAR(both.number_at(0.25), -2, 1e-12);
}

TEST(ColorScale, GivesZeroTheColorOfZeroAndTellsTheSignsApart) {
  const ColorScale scale{ColorMap::values, true, {-8, 8, 0.5}};
  EXPECT_EQ(scale.color(0), core::color::color_at(ColorMap::values, true, 0.5));
  EXPECT_EQ(scale.color(0.1), scale.color(0)) << "smaller than the least, which is marked";
  EXPECT_NE(scale.color(0.5), scale.color(-0.5));
}

TEST(Remembered, KeepsTheLatestUsedActionsEachOnce) {
  app::View view;
  for (int k = 0; k < 12; ++k)
    view.forms.used_actions =
        app::with_used_action(std::move(view.forms.used_actions), "action " + std::to_string(k % 10));
  EXPECT_EQ(view.forms.used_actions.size(), 8u);
  EXPECT_EQ(view.forms.used_actions[0], "action 1");
  EXPECT_EQ(app::with_used_action({"a"}, "b\nc"), std::vector<std::string>{"a"}) << "settings are lines";
  app::View again;
  apply_settings({{"used_actions", "a\tb\t\ta\tc"}}, again);
  EXPECT_EQ(again.forms.used_actions, (std::vector<std::string>{"a", "b", "c"}));
}

TEST(Remembered, IsReadBackAsItWas) {
  app::View view;
  view.settings.dark = false, view.settings.scale = 1.5f, view.settings.text_size = 1.1f,
  view.look.tab = app::Tab::tokens;
  view.settings.left_width = 310, view.settings.right_width = 402, view.look.gutters = true;
  view.look.folded = {Stage::mask, Stage::scores};
  view.look.colors.sequential = ColorMap::magma, view.look.colors.diverging = ColorMap::red_blue,
  view.look.colors.logarithmic = true;
  view.forms.used_actions = {"model/causal", "view/present"};
  app::View again;
  apply_settings(saved_settings(view), again);
  EXPECT_EQ(again.forms.used_actions, view.forms.used_actions);
  EXPECT_EQ(saved_settings(again), saved_settings(view));
  EXPECT_EQ(again.look.colors, view.look.colors);
  EXPECT_EQ(again.look.folded, view.look.folded);
  EXPECT_EQ(again.look.tab, app::Tab::tokens);
  EXPECT_FLOAT_EQ(again.settings.text_size, 1.1f);
}

TEST(Remembered, LeavesAsItIsWhatSettingsSayWrongly) {
  app::View view;
  apply_settings({{"scale_percent", "a lot"},
                  {"text_percent", "900"},
                  {"view", "sideways"},
                  {"weights_map", "rainbow"},
                  {"left_width", "-4"}},
                 view);
  app::View fresh;
  fresh.settings.has_seen_tour = true;  // a user with saved settings knows the tour
  EXPECT_EQ(saved_settings(view), saved_settings(fresh));
}

TEST(ViewText, KeepsRangeMeasureAndTheLargeStage) {
  app::View view;
  view.look.colors.range = ColorRangeRule::typed;
  view.look.colors.typed_values = {-0.5, 4}, view.look.colors.typed_weights = {0.01, 0.2};
  view.look.colors.logarithmic = true, view.look.gutters = true, view.look.large = Stage::scores;
  app::View again;
  restore_view(view_text(view), again);
  EXPECT_EQ(again.look.colors, view.look.colors);
  EXPECT_EQ(again.look.large, Stage::scores);
  EXPECT_TRUE(again.look.gutters);
}

}  // namespace
