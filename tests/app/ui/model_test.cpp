// MODEL: its fields and switches, the rules of the mask, and the additions of modern models.
#include <gmock/gmock.h>

#include <cmath>
#include <string>

#include "app/ui/panels/heads/heads_panel.hpp"
#include "app/ui/panels/model/model_panel.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "core/base/number.hpp"
#include "core/editing/presets.hpp"
#include "tests/support/program.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/steps.hpp"

namespace {

using namespace core::attention;
using namespace core::editing;
using app::Key;
using gui::Panels;
using testing::HasSubstr;

struct ModelPanel : testing::Test {
  Panels ui{gui::draw_side_panels};
};

TEST_F(ModelPanel, TakesWhatIsTypedClickedAndChosen) {
  const std::string of_two_columns = core::text::number_text(1 / std::sqrt(2.0));
  support::expect_steps(ui, {{"model/scale", 3u, "scale " + of_two_columns},
                             {"model/factor", "0.5", "scale 0.5"},
                             {"model/factor", "nan", "! expected a number"},
                             {"model/scores", 1u, "scores \"uniform\""},
                             {"model/merge", 1u, "merge_heads \"reshape_without_transpose\""},
                             {"model/method", 1u, "mask.method \"renormalise\""},
                             {"model/method", 2u, "mask.method \"zero_after_softmax\""},
                             {"model/method", 3u, "mask.method \"large_negative\""},
                             {"model/method", 0u, "mask.method \"negative_infinity\""},
                             {"model/context", "8", "context_length 8"},
                             {"model/context", "", "context_length null"},
                             {"model/context", "2", "! at most 2 tokens"},
                             {"model/tokens", "4", "… embeddings 4 × 3"},
                             {"model/d_in", "5", "… embeddings 4 × 5"},
                             {"model/d_out", "6", "… projections.key.weight 5 × 6"},
                             {"model/heads", "3", "n_heads 3"},
                             {"model/bias_k", {}, "projections.key.bias [0, 0, 0, 0, 0, 0]"},
                             {"model/bias_o", {}, "projections.output.bias null"},
                             {"model/output", {}, "… projections.output null"},
                             {"model/heads", "1", "n_heads 1"},
                             {"model/projections", {}, "… projections null"}});
  ui.forget();
  ui.click("model/d_out");
  ui.type("9");
  ui.key(Key::enter);
  EXPECT_TRUE(ui.edits<SetOutputWidth>().empty()) << "d_out is d_in without projections";
}

TEST_F(ModelPanel, SaysAtAFieldWhatItDoesNotTake) {
  ui.fill_in("model/tokens", "many");
  EXPECT_TRUE(ui.has("model/tokens/refused"));
  EXPECT_THAT(ui.message().text, HasSubstr("\"many\""));
  ui.fill_in("model/heads", "5");  // six columns do not divide into five heads
  EXPECT_TRUE(ui.message().is_error);
  EXPECT_TRUE(ui.has("model/heads/refused")) << ui.message().text;
  EXPECT_FALSE(ui.has("model/tokens/refused"));
  ui.fill_in("model/tokens", "4");
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
  ui.click("model/tokens");
  ui.type("5");
  ui.key(Key::escape);
  EXPECT_EQ(ui.model().n_tokens(), 3u);
  EXPECT_FALSE(ui.view().forms.typed.has_value());
}

TEST_F(ModelPanel, StepsHeadsAlongTheDivisorsOfTheWidth) {
  ui.fill_in("model/d_out", "12");
  ui.click("model/heads");
  for (const std::size_t heads : {3u, 4u, 6u, 12u, 12u}) {
    ui.key(Key::up);
    EXPECT_EQ(ui.model().n_heads, heads);
  }
  ui.key(Key::down);
  EXPECT_EQ(ui.model().n_heads, 6u);
  ui.click("model/d_out");
  ui.key(Key::up);
  EXPECT_EQ(ui.model().d_out(), 18u);
}

TEST_F(ModelPanel, CountsCellsSwitchedByHandAndTakesThemBack) {
  EXPECT_FALSE(ui.has("model/clear_cells"));
  ui.change([&](auto& m) { m.mask.cells = {{1, 0, false}}; });
  ASSERT_TRUE(ui.has("model/clear_cells"));
  EXPECT_FALSE(ui.has("model/empty_rows")) << "the query still sees itself";
  ui.click("model/clear_cells");
  EXPECT_TRUE(ui.model().mask.cells.empty());
}

TEST_F(ModelPanel, AStrokeOverThePictureOfTheMaskHidesCellsInOneStepOfUndo) {
  ui.click("model/mask_more");
  const auto picture = ui.rect("model/mask_picture");
  const float cell = (picture.max.y - picture.min.y) / 6;
  ui.drag("model/mask_picture", 0, 2 * cell);  // from the center, query 3 and key 3, unmasked
  using Cells = std::vector<MaskCell>;
  EXPECT_EQ(ui.model().mask.cells, (Cells{{3, 3, false}, {4, 3, false}, {5, 3, false}}));
  ui.drag("model/mask_picture", cell, 0);  // to key 4, masked as a later one
  EXPECT_EQ(ui.model().mask.cells, (Cells{{3, 4, true}, {4, 3, false}, {5, 3, false}}))
      << "what is switched back follows the rule again";
  ui.store.dispatch(app::Undo{});
  ui.store.dispatch(app::Undo{});
  EXPECT_TRUE(ui.model().mask.cells.empty());
}

TEST_F(ModelPanel, SetsTheOtherRulesOfTheMaskInAPopup) {
  const auto expect = [&](const std::vector<support::Step>& steps) {
    support::expect_steps(ui, steps, "model/mask_more");
  };
  EXPECT_FALSE(ui.has("model/mask_rules"));
  expect({{"mask/window", "2, -1", "mask.window [2, -1]"},
          {"mask/prefix", "1", "mask.prefix 1"},
          {"mask/documents", "0 0 0, 0 1 1", "mask.documents [0, 0, 0, 0, 1, 1]"},
          {"mask/padding", "5 2 5", "mask.hidden_keys [2, 5]"}});
  EXPECT_TRUE(ui.has("model/mask_rules"));
  EXPECT_FALSE(ui.has("mask/align")) << "there are as many queries as keys";
  expect({{"mask/documents", "0 0", "! expected 6 numbers, one for each token, got 2"},
          {"mask/window", "two", "! window: expected two whole numbers"},
          {"mask/padding", "", "−mask.hidden_keys"},
          {"mask/window", "", "−mask.window"},
          {"mask/documents", "", "−mask.documents"},
          {"mask/prefix", "0", "−mask.prefix"}});
  EXPECT_FALSE(ui.has("model/mask_rules"));
}

TEST_F(ModelPanel, OffersZerosWhenAQuerySeesNoKey) {
  arma::mat bias(6, 6);
  bias(0, 1) = -INFINITY;
  ui.change([&](auto& m) { m.additions.score_bias = {SharedMatrix(bias)}; });
  EXPECT_FALSE(ui.has("model/empty_rows"));
  bias(2, arma::span(0, 2)).fill(-INFINITY);  // the causal rule masks the others
  ui.change([&](auto& m) { m.additions.score_bias = {SharedMatrix(bias)}; });
  ui.click("model/empty_rows");
  EXPECT_EQ(ui.model().mask.empty_rows, EmptyRows::zeros);
  ui.click("model/empty_rows");
  EXPECT_EQ(ui.model().mask.empty_rows, EmptyRows::nan);
}

TEST_F(ModelPanel, SetsDropout) {
  ui.drag("model/dropout", 40, 0);
  const double rate = ui.model().dropout.rate;
  EXPECT_TRUE(rate > 0.5 && rate < 1) << rate;
  EXPECT_EQ(rate, std::round(rate * 100) / 100);
  ui.click("model/dropout", {.ctrl = true});
  ui.type("0.125");
  ui.key(Key::enter);
  EXPECT_EQ(ui.model().dropout.rate, 0.125);
  ui.change([&](auto& m) { m.dropout.rate = 0; });
  EXPECT_FALSE(ui.has("model/draw_again"));
  ui.change([&](auto& m) { m.dropout.rate = 0.5; });
  const auto seed = ui.model().dropout.seed;
  ui.click("model/draw_again");
  EXPECT_EQ(ui.model().dropout.seed, seed + 1);
  ui.choose("model/stream", 1);
  EXPECT_EQ(ui.model().dropout.stream, DropoutStream::mkl);
  ui.click("model/training");
  EXPECT_FALSE(ui.model().dropout.training);
  ui.fill_in("model/seed", "42");
  EXPECT_EQ(ui.model().dropout.seed, 42u);
  ui.change([&](auto& m) {
    m.dropout.given = {arma::mat(6, 6, arma::fill::ones), arma::mat(6, 6, arma::fill::ones)};
  });
  ui.click("model/draw_instead");
  EXPECT_TRUE(ui.model().dropout.given.empty());
}

TEST_F(ModelPanel, SaysWhereThePresetsNumbersStandUntilTheyChange) {
  EXPECT_FALSE(ui.has("model/evidence")) << "the first preset is an example of our own";
  const float without = ui.center("model/tokens").y;
  ui.load("004-causal");
  EXPECT_TRUE(ui.has("model/evidence"));
  EXPECT_GT(ui.center("model/tokens").y, ui.center("model/evidence").y);
  ui.click("model/causal");
  EXPECT_FALSE(ui.has("model/evidence"));
  EXPECT_EQ(ui.center("model/tokens").y, without);
}

TEST_F(ModelPanel, KeepsTheEvidenceOfEveryPresetWithinASmallWindow) {
  ImGui::GetIO().DisplaySize = {1280, 800};
  std::size_t shown = 0;
  for (const Preset& preset : presets()) {
    ui.load(preset.name);
    const auto rect = ui.landmarks().find("model/evidence");
    ASSERT_EQ(rect.has_value(), preset.evidence != Evidence::sampled) << preset.name;
    if (!rect) continue;
    ++shown;
    EXPECT_LE(rect->max.x, 256 - 8) << preset.name;
    EXPECT_LE(rect->max.y, ui.landmarks().find("model/tokens")->min.y) << preset.name;
  }
  EXPECT_EQ(shown, 29u);  // all but the first and seven modern ones, initialized from a seed
}

TEST_F(ModelPanel, WalksThroughABatch) {
  ui.show(apply(ui.model(), AddSequence{0}));
  ui.click("model/sequence_on");
  EXPECT_EQ(ui.view().look.sequence, 1u);
  ui.click("model/sequence_on");
  EXPECT_EQ(ui.view().look.sequence, 0u);
  ui.click("model/sequence_add");
  EXPECT_EQ(ui.model().sequences.size(), 3u);
  ui.click("model/sequence_remove");
  EXPECT_EQ(ui.model().sequences.size(), 2u);
}

using app::panels::additions_words;
using testing::ElementsAre;

/// Returns a model of four heads of four columns, with six tokens.
Model four_heads() {
  support::Random random(7);
  Model m;
  m.sequences = {{{"a", "b", "c", "d", "e", "f"}, support::matrix(random, 6, 8)}};
  Projections p;
  for (Linear* linear : {&p.query, &p.key, &p.value}) linear->weight = support::matrix(random, 8, 16);
  m.projections = p;
  m.n_heads = 4;
  return m;
}

struct AdditionsPopup : testing::Test {
  Panels ui{gui::draw_side_panels};

  void SetUp() override { ui.show(four_heads()); }
  void expect(const std::vector<support::Step>& steps) { support::expect_steps(ui, steps, "model/more"); }
  const Additions& now() const { return ui.model().additions; }
  std::string words() const { return additions_words(ui.model(), 0); }
};

TEST_F(AdditionsPopup, OffersTheDivisorsOfTheHeadsAsGroups) {
  expect({{"more/groups", 1u, "n_kv_heads 2; projections.key.weight 8 × 8; projections.value.weight 8 × 8"}});
  EXPECT_EQ(words(), "KV heads 4 → 2");
  EXPECT_TRUE(ui.has("model/additions"));
  expect({{"more/groups", 2u, "… n_kv_heads 1"}, {"more/groups", 0u, "… −n_kv_heads"}});
  EXPECT_EQ(words(), "");
}

TEST_F(AdditionsPopup, NormsBeginWithFactorsOfOne) {
  expect({{"more/norm/1",
           {},
           "normalise.epsilon 1e-06; normalise.key [1, 1, 1, 1]; normalise.query [1, 1, 1, 1]; "
           "normalise.rule \"rms\""},
          {"more/epsilon", "0.001", "normalise.epsilon 0.001"},
          {"more/norm/2", {}, "normalise.rule \"layer\""},
          {"more/epsilon", "-1", "! normalise.epsilon: expected a finite number that is not negative"}});
  EXPECT_EQ(words(), "QK LayerNorm");
  ui.click("more/norm/0");
  EXPECT_FALSE(now().normalize);
}

TEST_F(AdditionsPopup, SetsAllOfRotaryPositions) {
  expect({{"more/rotary", {}, "positions.rotary.base 10000; positions.rotary.pairs \"halves\""},
          {"more/base", "500000", "positions.rotary.base 5e+05"},
          {"more/pairs/1", {}, "positions.rotary.pairs \"neighbours\""},
          {"more/columns", "2", "positions.rotary.dimensions 2"},
          {"more/first", "-3", "positions.rotary.first -3"},
          {"more/scaling", 2u, "… positions.rotary.scaling.rule \"llama3\""},
          {"more/factor", "8", "positions.rotary.scaling.factor 8"},
          {"more/low", "2", "positions.rotary.scaling.low 2"},
          {"more/high", "5", "positions.rotary.scaling.high 5"},
          {"more/original", "64", "positions.rotary.scaling.original 64"},
          {"more/columns", "3", "! positions.rotary.dimensions"},
          {"more/base", "many", "! base: expected a finite number, found \"many\""},
          {"more/first", "0.5", "! first position: expected a whole number"}});
  EXPECT_EQ(words(), "rotary adjacent");
  expect({{"more/frequencies", {}, "positions.rotary.inverse_frequencies [1]"},
          {"more/columns", "", "−positions.rotary.dimensions; −positions.rotary.inverse_frequencies"}});
  ui.click("more/rotary");
  EXPECT_EQ(now(), Additions());
}

TEST_F(AdditionsPopup, SetsWhatANormIsTakenOver) {
  const std::string ones = "1, 1, 1, 1", of_all = ones + ", " + ones + ", " + ones + ", " + ones;
  expect(
      {{"more/norm/1", {}, "… normalise.rule \"rms\""},
       {"more/norm_over", 2u,
        "normalise.key [" + of_all + "]; normalise.over \"all_heads\"; normalise.query [" + of_all + "]"}});
  EXPECT_EQ(words(), "QK RMSNorm over all heads");
  expect({{"more/norm_over", 1u, "normalise.over \"each_head\""},
          {"more/norm_over", 0u,
           "normalise.key [" + ones + "]; normalise.query [" + ones + "]; −normalise.over"}});
}

TEST_F(AdditionsPopup, SetsTheNumbersOfEveryScaling) {
  const auto scaling = [&] { return now().positions.rotary->scaling; };
  expect({{"more/rotary", {}, "… positions.rotary.base 10000"},
          {"more/scaling", 1u, "… positions.rotary.scaling.rule \"linear\""},
          {"more/factor", "8", "positions.rotary.scaling.factor 8"},
          {"more/scaling", 3u, "… positions.rotary.scaling.rule \"yarn\""}});
  EXPECT_NEAR(scaling().attention, 0.1 * std::log(8) + 1, 1e-15);
  EXPECT_EQ(scaling().high, 32) << "beta_fast";
  expect(
      {{"more/low", "2", "positions.rotary.scaling.beta_slow 2"},
       {"more/high", "16", "positions.rotary.scaling.beta_fast 16"},
       {"more/attention", "1.25", "positions.rotary.scaling.attention_factor 1.25"},
       {"more/truncate", {}, "positions.rotary.scaling.truncate false"},
       {"more/attention", "0", "! scaling.attention_factor: expected a finite number above 0"},
       {"more/scaling", 4u, "… positions.rotary.scaling.rule \"dynamic\""},
       {"more/original", "3", "positions.rotary.scaling.original 3"},
       {"more/scaling", 5u, "… positions.rotary.scaling.short_factor [1, 1]"},
       {"more/short", "2, 3", "positions.rotary.scaling.short_factor [2, 3]"},
       {"more/long", "2, 3, 9", "! long: expected a factor for each pair"},
       {"more/columns", "2",
        "positions.rotary.dimensions 2; positions.rotary.scaling.long_factor [1]; positions.rotary.scaling.short_factor [1]"}});
}

TEST_F(AdditionsPopup, SetsBiasesOfDistances) {
  expect({{"more/distance", 1u, "positions.alibi {}"}});
  ui.click("more/slopes");
  ASSERT_TRUE(now().positions.alibi->slopes);
  EXPECT_THAT(arma::conv_to<std::vector<double>>::from(arma::mat(*now().positions.alibi->slopes)),
              ElementsAre(0.25, 0.0625, 0.015625, 0.00390625))
      << "2^(-8(h + 1)/4)";
  expect({{"more/distance", 2u, "… −positions.alibi"},
          {"more/buckets", "8", "positions.relative.table 4 × 8"},
          {"more/max_distance", "20", "positions.relative.max_distance 20"},
          {"more/both", {}, "positions.relative.bidirectional false"},
          {"more/buckets", "1", "! buckets: expected 2 to 4096"}});
  EXPECT_EQ(words(), "8 buckets");
  ui.choose("more/distance", 0);
  EXPECT_EQ(now(), Additions());
}

TEST_F(AdditionsPopup, SetsCapBiasAndSink) {
  expect({{"more/cap", "50", "score_cap 50"},
          {"more/cap", "-2", "! cap: expected a number above 0, or nothing, found \"-2\""},
          {"more/bias", 1u, "score_bias 6 × 6"},
          {"more/bias", 2u, "score_bias 4 × 6 × 6"},
          {"more/sink", {}, "sink [0, 0, 0, 0]"}});
  EXPECT_EQ(now().score_bias[3], SharedMatrix(arma::mat(6, 6, arma::fill::zeros)));
  ui.change([](Model& m) { m.mask.window = {3, 0}; });
  EXPECT_EQ(words(), "softcap 50 · bias per head · window 3, 0 · sink");
  EXPECT_FALSE(ui.has("model/mask_rules")) << "it is said once";
  expect({{"more/cap", "", "−score_cap"}, {"more/bias", 0u, "−score_bias"}, {"more/sink", {}, "−sink"}});
  EXPECT_TRUE(ui.has("model/mask_rules"));
}

TEST_F(AdditionsPopup, GivesKeysRowsOfTheirOwn) {
  expect({{"more/keys", 1u, "… key_embeddings 6 × 8"}});
  EXPECT_EQ(ui.model().sequences[0].key_embeddings, ui.model().sequences[0].embeddings);
  EXPECT_EQ(ui.model().sequences[0].keys(), ui.model().sequences[0].tokens);
  expect({{"more/n_keys", "8", "… key_embeddings 8 × 8"},
          {"more/n_keys", "no", "! encoder states: expected a whole number"}});
  EXPECT_EQ(ui.model().sequences[0].key_embeddings.at(0, 0), ui.model().sequences[0].embeddings.at(0, 0));
  EXPECT_EQ(ui.model().sequences[0].key_embeddings.at(7, 0), 0);
  EXPECT_EQ(ui.model().sequences[0].keys()[7], "7");
  EXPECT_EQ(words(), "8 cached tokens");
  expect({{"more/keys", 0u, "… −key_embeddings"}});
}

TEST(SharedKeys, AreOnePictureForEachGroupInHeads) {
  Panels ui{[](const app::Frame& frame) {
    support::in_window("heads", {0, 0}, ImGui::GetIO().DisplaySize, [&] { app::panels::draw_heads(frame); });
  }};
  Model m = four_heads();
  m.n_kv_heads = 2;
  for (Linear* linear : {&m.projections->key, &m.projections->value})
    linear->weight = arma::mat(arma::mat(linear->weight).head_cols(8));
  ui.show(m);
  const auto pictures = [&](Stage stage) {
    ui.look([&](app::View& v) { v.look.heads_stage = stage; });
    ui.run(3);
    std::string heads;
    for (int h = 0; h < 4; ++h)
      if (ui.has("heads/name/" + std::to_string(h))) heads += std::to_string(h);
    return heads;
  };
  EXPECT_EQ(pictures(Stage::queries), "0123");
  EXPECT_EQ(pictures(Stage::keys), "02") << "the first head of each group";
  EXPECT_EQ(pictures(Stage::values), "02");
  EXPECT_EQ(app::widgets::head_words(m, Stage::keys, 3), "group 1 (heads 2, 3)");
  EXPECT_EQ(app::widgets::head_words(m, Stage::queries, 3), "head 3");
  EXPECT_EQ(app::widgets::head_words(m, Stage::mask, 3), "");
}

TEST(SharedKeys, SayTheirGroupInTheStrip) {
  Panels ui{gui::draw_strip};
  ui.show(four_heads());
  EXPECT_FALSE(ui.has("strip/group/keys"));
  ui.edit(core::editing::SetKvHeadCount{2});
  EXPECT_TRUE(ui.has("strip/group/keys"));
  EXPECT_TRUE(ui.has("strip/group/values"));
  EXPECT_FALSE(ui.has("strip/group/queries"));
}

}  // namespace
