#include <gmock/gmock.h>

#include <array>
#include <cmath>

#include "core/editing/presets.hpp"
#include "tests/app/ui/panels/side_panels.hpp"
#include "tests/support/panels.hpp"

namespace {

using namespace core::attention;
using namespace core::editing;
using app::Key;
using gui::Panels;
using testing::HasSubstr;

struct ModelPanel : testing::Test {
  Panels ui{gui::draw_side_panels};

  void choose(const std::string& combo, std::size_t line) {
    ui.click(combo);
    ui.click(combo + "/" + std::to_string(line));
  }
  void type_into(const std::string& field, const std::string& text) {
    ui.click(field);
    ui.type(text);
    ui.key(Key::enter);
  }
};

TEST_F(ModelPanel, SwitchesTheCausalMask) {
  ui.click("model/causal");
  ASSERT_EQ(ui.edits<SetCausal>().size(), 1u);
  EXPECT_FALSE(ui.model().mask.causal);
  ui.click("model/causal");
  EXPECT_TRUE(ui.model().mask.causal);
}

TEST_F(ModelPanel, TakesTypedCounts) {
  type_into("model/tokens", "4");
  EXPECT_EQ(ui.model().n_tokens(), 4u);
  type_into("model/d_in", "5");
  EXPECT_EQ(ui.model().d_model(), 5u);
  type_into("model/d_out", "6");
  EXPECT_EQ(ui.model().d_out(), 6u);
  type_into("model/heads", "3");
  EXPECT_EQ(ui.model().n_heads, 3u);
}

TEST_F(ModelPanel, SaysAtAFieldWhatItDoesNotTake) {
  type_into("model/tokens", "many");
  ui.run(2);
  EXPECT_TRUE(ui.has("model/tokens/refused"));
  EXPECT_THAT(ui.message().text, HasSubstr("\"many\""));
  type_into("model/heads", "5");  // six columns do not part into five
  ui.run(2);
  EXPECT_TRUE(ui.message().is_error);
  EXPECT_TRUE(ui.has("model/heads/refused")) << ui.message().text;
  EXPECT_FALSE(ui.has("model/tokens/refused"));
  type_into("model/tokens", "4");
  ui.run(2);
  EXPECT_FALSE(ui.has("model/heads/refused"));
  EXPECT_FALSE(ui.has("model/tokens/refused"));
}

TEST_F(ModelPanel, HandsInAFieldThatIsLeftByAClick) {
  ui.click("model/tokens");
  ui.type("3");
  ui.click("model/causal");
  EXPECT_EQ(ui.model().n_tokens(), 3u);
  ui.click("model/d_in");
  ui.type("7");
  ui.click("model/tokens");
  EXPECT_EQ(ui.model().d_model(), 7u);
}

TEST_F(ModelPanel, EscapeLeavesAFieldAsItWas) {
  ui.click("model/tokens");
  ui.type("3");
  ui.key(Key::escape);
  ui.run();
  EXPECT_EQ(ui.model().n_tokens(), 6u);
  EXPECT_TRUE(ui.edits<SetTokenCount>().empty());
  EXPECT_FALSE(ui.view().forms.typed.has_value());
}

TEST_F(ModelPanel, StepsHeadsAlongTheDivisorsOfTheWidth) {
  type_into("model/d_out", "12");
  ui.click("model/heads");
  for (const std::size_t heads : {3u, 4u, 6u, 12u, 12u}) {
    ui.key(Key::up);
    EXPECT_EQ(ui.model().n_heads, heads);
  }
  ui.key(Key::down);
  EXPECT_EQ(ui.model().n_heads, 6u);
}

TEST_F(ModelPanel, StepsTheWidthByTheHeads) {
  ui.click("model/d_out");
  ui.key(Key::up);
  EXPECT_EQ(ui.model().d_out(), 6u);
  ui.key(Key::down);
  ui.key(Key::down);
  ui.key(Key::down);
  EXPECT_EQ(ui.model().d_out(), 2u);
}

TEST_F(ModelPanel, SaysWhatItExpectedInsteadOfRubbish) {
  type_into("model/tokens", "six");
  EXPECT_TRUE(ui.message().is_error);
  EXPECT_EQ(ui.message().text, "tokens: expected a whole number, found \"six\"");
  EXPECT_EQ(ui.model().n_tokens(), 6u);
  type_into("model/heads", "3");
  EXPECT_TRUE(ui.message().is_error);
  EXPECT_EQ(ui.model().n_heads, 2u);
}

TEST_F(ModelPanel, SwitchesProjectionsAndTheirBiases) {
  ui.click("model/bias_k");
  ASSERT_TRUE(ui.model().projections->key.bias.has_value());
  EXPECT_FALSE(ui.model().projections->query.bias.has_value());
  ui.click("model/bias_o");
  EXPECT_FALSE(ui.model().projections->output->bias.has_value());
  ui.click("model/output");
  EXPECT_FALSE(ui.model().projections->output.has_value());
  ui.play(support::click(ui.centre("model/heads")));
  ui.type("1");
  ui.key(Key::enter);
  ui.click("model/projections");
  EXPECT_FALSE(ui.model().projections.has_value());
  ui.forget();
  ui.click("model/d_out");
  ui.type("9");
  ui.key(Key::enter);
  EXPECT_TRUE(ui.edits<SetOutputWidth>().empty()) << "d_out is d_in without projections";
}

TEST_F(ModelPanel, OffersEveryMaskMethod) {
  for (const std::size_t i : {1u, 2u, 3u, 0u}) {
    choose("model/method", i);
    const std::array methods{MaskMethod::negative_infinity, MaskMethod::renormalise,
                             MaskMethod::zero_after_softmax, MaskMethod::large_negative};
    EXPECT_EQ(ui.model().mask.method, methods[i]);
  }
}

TEST_F(ModelPanel, CountsCellsSwitchedByHandAndTakesThemBack) {
  EXPECT_FALSE(ui.has("model/clear_cells"));
  ui.change([&](auto& m) { m.mask.cells = {{1, 0, false}}; });
  ui.run();
  ASSERT_TRUE(ui.has("model/clear_cells"));
  EXPECT_FALSE(ui.has("model/empty_rows")) << "the query still sees itself";
  ui.click("model/clear_cells");
  EXPECT_TRUE(ui.model().mask.cells.empty());
}

TEST_F(ModelPanel, AStrokeOverThePictureOfTheMaskHidesCellsInOneStepOfUndo) {
  ui.click("model/mask_more");
  ui.run();
  const auto picture = ui.rect("model/mask_picture");
  const float cell = (picture.max.y - picture.min.y) / 6;
  ui.drag("model/mask_picture", 0, 2 * cell);  // from the middle, query 3 and key 3, which it sees
  ui.run();
  using Cells = std::vector<MaskCell>;
  EXPECT_EQ(ui.model().mask.cells, (Cells{{3, 3, false}, {4, 3, false}, {5, 3, false}}));
  ui.drag("model/mask_picture", cell, 0);  // to key 4, which comes after it
  ui.run();
  EXPECT_EQ(ui.model().mask.cells, (Cells{{3, 4, true}, {4, 3, false}, {5, 3, false}}))
      << "what is switched back follows the rule again";
  ui.store.dispatch(app::Undo{});
  ui.store.dispatch(app::Undo{});
  EXPECT_TRUE(ui.model().mask.cells.empty());
}

TEST_F(ModelPanel, SetsTheOtherRulesOfTheMaskInAPopup) {
  const auto set = [&](const char* field, const std::string& text) {
    if (!ui.has("mask/window")) ui.click("model/mask_more");
    ui.click(field);
    ui.key(Key::a, {.ctrl = true});
    if (text.empty())
      ui.key(Key::delete_);
    else
      ui.type(text);
    ui.key(Key::enter);
    ui.run();
  };
  EXPECT_FALSE(ui.has("model/mask_rules"));
  set("mask/window", "2, -1");
  EXPECT_EQ(ui.model().mask.window, (MaskWindow{2, {}}));
  set("mask/prefix", "1");
  EXPECT_EQ(ui.model().mask.prefix, 1u);
  set("mask/documents", "0 0 0, 0 1 1");
  EXPECT_EQ(ui.model().mask.documents, (std::vector<std::size_t>{0, 0, 0, 0, 1, 1}));
  set("mask/padding", "5 2 5");
  EXPECT_EQ(ui.model().mask.hidden_keys, (std::vector<std::vector<std::size_t>>{{2, 5}}));
  EXPECT_TRUE(ui.has("model/mask_rules"));
  EXPECT_FALSE(ui.has("mask/align")) << "there are as many queries as keys";
  set("mask/documents", "0 0");
  EXPECT_THAT(ui.message().text, HasSubstr("expected 6 numbers, one for each token, got 2"));
  set("mask/window", "two");
  EXPECT_THAT(ui.message().text, HasSubstr("window: expected two whole numbers"));
  EXPECT_EQ(ui.model().mask.window, (MaskWindow{2, {}}));
  set("mask/padding", "");
  set("mask/window", "");
  set("mask/documents", "");
  set("mask/prefix", "0");
  EXPECT_EQ(ui.model().mask, Mask{});
  EXPECT_FALSE(ui.has("model/mask_rules"));
}

TEST_F(ModelPanel, OffersZerosWhenAQuerySeesNoKey) {
  ui.change([&](auto& m) { m.mask.cells = {{0, 0, false}}; });
  ui.run();
  ui.click("model/empty_rows");
  EXPECT_EQ(ui.model().mask.empty_rows, EmptyRows::zeros);
  ui.click("model/empty_rows");
  EXPECT_EQ(ui.model().mask.empty_rows, EmptyRows::nan);
}

TEST_F(ModelPanel, OffersZerosWhenABiasHidesAllThatAQuerySees) {
  arma::mat bias(6, 6);
  bias(0, 1) = -INFINITY;
  ui.change([&](auto& m) { m.additions.score_bias = {SharedMatrix(bias)}; });
  ui.run();
  EXPECT_FALSE(ui.has("model/empty_rows"));
  bias(2, arma::span(0, 2)).fill(-INFINITY);  // the causal rule hides the others
  ui.change([&](auto& m) { m.additions.score_bias = {SharedMatrix(bias)}; });
  ui.run();
  ui.click("model/empty_rows");
  EXPECT_EQ(ui.model().mask.empty_rows, EmptyRows::zeros);
}

TEST_F(ModelPanel, DragsTheRateInHundredths) {
  ui.drag("model/dropout", 40, 0);
  const double rate = ui.model().dropout.rate;
  EXPECT_GT(rate, 0.5);
  EXPECT_LT(rate, 1);
  EXPECT_EQ(rate, std::round(rate * 100) / 100);
}

TEST_F(ModelPanel, TakesATypedRateAsItIs) {
  ui.click("model/dropout", {.ctrl = true});
  ui.type("0.125");
  ui.key(Key::enter);
  EXPECT_EQ(ui.model().dropout.rate, 0.125);
}

TEST_F(ModelPanel, DrawsAnotherDropoutMask) {
  EXPECT_FALSE(ui.has("model/draw_again"));
  ui.change([&](auto& m) { m.dropout.rate = 0.5; });
  ui.run();
  const auto seed = ui.model().dropout.seed;
  ui.click("model/draw_again");
  EXPECT_EQ(ui.model().dropout.seed, seed + 1);
  choose("model/stream", 1);
  EXPECT_EQ(ui.model().dropout.stream, DropoutStream::mkl);
  ui.click("model/training");
  EXPECT_FALSE(ui.model().dropout.training);
  type_into("model/seed", "42");
  EXPECT_EQ(ui.model().dropout.seed, 42u);
}

TEST_F(ModelPanel, DrawsInsteadOfAGivenMask) {
  ui.change([&](auto& m) {
    m.dropout.given = {arma::mat(6, 6, arma::fill::ones), arma::mat(6, 6, arma::fill::ones)};
  });
  ui.change([&](auto& m) { m.dropout.rate = 0.5; });
  ui.run();
  ui.click("model/draw_instead");
  EXPECT_TRUE(ui.model().dropout.given.empty());
}

TEST_F(ModelPanel, KeepsTheScaleWhenAFactorIsChosen) {
  choose("model/scale", 3);
  EXPECT_EQ(ui.model().scale.rule, ScaleRule::factor);
  EXPECT_DOUBLE_EQ(ui.model().scale.factor, 1 / std::sqrt(2.0));
  type_into("model/factor", "0.5");
  EXPECT_EQ(ui.model().scale.factor, 0.5);
  type_into("model/factor", "nan");
  EXPECT_THAT(ui.message().text, HasSubstr("expected a number"));
  EXPECT_EQ(ui.model().scale.factor, 0.5);
}

TEST_F(ModelPanel, ChoosesScoresAndMerging) {
  choose("model/scores", 1);
  EXPECT_EQ(ui.model().scores, ScoreRule::uniform);
  choose("model/merge", 1);
  EXPECT_EQ(ui.model().merge, MergeRule::reshape_without_transpose);
}

TEST_F(ModelPanel, SetsAndClearsTheContextLength) {
  type_into("model/context", "8");
  EXPECT_EQ(ui.model().context_length, std::optional<std::size_t>(8));
  ui.click("model/context");
  ui.key(Key::delete_);
  ui.key(Key::enter);
  EXPECT_FALSE(ui.model().context_length.has_value());
  type_into("model/context", "2");
  EXPECT_TRUE(ui.message().is_error) << "six tokens do not fit";
  EXPECT_FALSE(ui.model().context_length.has_value());
}

TEST_F(ModelPanel, AsksForAPreset) {
  choose("model/preset", 0);
  ASSERT_EQ(ui.asked<app::LoadPreset>().size(), 1u);
  EXPECT_EQ(ui.asked<app::LoadPreset>().front().name, presets().front().name);
}

TEST_F(ModelPanel, SaysWhereThePresetsNumbersStandUntilTheyChange) {
  EXPECT_FALSE(ui.has("model/evidence")) << "the first preset is an example of our own";
  const float without = ui.centre("model/tokens").y;
  ui.load("004-causal");
  EXPECT_TRUE(ui.has("model/evidence"));
  EXPECT_GT(ui.centre("model/tokens").y, ui.centre("model/evidence").y);
  ui.click("model/causal");
  ui.run();
  EXPECT_FALSE(ui.has("model/evidence"));
  EXPECT_EQ(ui.centre("model/tokens").y, without);
}

TEST_F(ModelPanel, KeepsTheEvidenceOfEveryPresetWithinASmallWindow) {
  ImGui::GetIO().DisplaySize = {1280, 800};
  std::size_t shown = 0;
  for (const Preset& preset : presets()) {
    ui.load(preset.name);
    const auto rect = ui.landmarks().find("model/evidence");
    ASSERT_EQ(rect.has_value(), preset.evidence != Evidence::drawn) << preset.name;
    if (!rect) continue;
    ++shown;
    EXPECT_LE(rect->max.x, 256 - 8) << preset.name;
    EXPECT_LE(rect->max.y, ui.landmarks().find("model/tokens")->min.y) << preset.name;
  }
  EXPECT_EQ(shown, 29u);  // all but the first and seven of today's, which are drawn
}

TEST_F(ModelPanel, WalksThroughABatch) {
  ui.show(apply(ui.model(), AddSequence{0}));
  ui.run();
  ui.click("model/sequence_on");
  EXPECT_EQ(ui.view().look.sequence, 1u);
  ui.click("model/sequence_on");
  EXPECT_EQ(ui.view().look.sequence, 0u);
  ui.click("model/sequence_add");
  EXPECT_EQ(ui.model().sequences.size(), 3u);
  ui.click("model/sequence_remove");
  EXPECT_EQ(ui.model().sequences.size(), 2u);
}

TEST_F(ModelPanel, StaysWithinItsRegionInASmallWindow) {
  ImGui::GetIO().DisplaySize = {1280, 800};
  ui.change([&](auto& m) { m.dropout.rate = 0.5; });
  ui.run(3);
  for (const auto& [name, rect] : ui.landmarks().all())
    if (name.starts_with("model/")) {
      EXPECT_LE(rect.max.x, 256 - 8) << name;
    }
}

}  // namespace
