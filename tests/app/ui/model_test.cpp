// MODEL: its fields and switches, the rules of the mask, and the additions of modern models.
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <string>

#include "app/ui/panels/heads/heads_panel.hpp"
#include "app/ui/panels/model/model_panel.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "core/base/positions.hpp"
#include "core/editing/presets.hpp"
#include "tests/support/program.hpp"
#include "tests/support/random_model.hpp"

namespace {

using namespace core::attention;
using namespace core::editing;
using app::Key;
using gui::Panels;
using testing::HasSubstr;

struct ModelPanel : testing::Test {
  Panels ui{gui::draw_side_panels};
};

TEST_F(ModelPanel, TakesTypedCounts) {
  ui.fill_in("model/tokens", "4");
  EXPECT_EQ(ui.model().n_tokens(), 4u);
  ui.fill_in("model/d_in", "5");
  EXPECT_EQ(ui.model().d_model(), 5u);
  ui.fill_in("model/d_out", "6");
  EXPECT_EQ(ui.model().d_out(), 6u);
  ui.fill_in("model/heads", "3");
  EXPECT_EQ(ui.model().n_heads, 3u);
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

TEST_F(ModelPanel, SwitchesProjectionsAndTheirBiases) {
  ui.click("model/bias_k");
  ASSERT_TRUE(ui.model().projections->key.bias.has_value());
  EXPECT_FALSE(ui.model().projections->query.bias.has_value());
  ui.click("model/bias_o");
  EXPECT_FALSE(ui.model().projections->output->bias.has_value());
  ui.click("model/output");
  EXPECT_FALSE(ui.model().projections->output.has_value());
  ui.play(support::click(ui.center("model/heads")));
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
    ui.choose("model/method", i);
    const std::array methods{MaskMethod::negative_infinity, MaskMethod::renormalize,
                             MaskMethod::zero_after_softmax, MaskMethod::large_negative};
    EXPECT_EQ(ui.model().mask.method, methods[i]);
  }
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
  const auto set = [&](const char* field, const std::string& text) {
    if (!ui.has("mask/window")) ui.click("model/mask_more");
    ui.fill_in(field, text);
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

TEST_F(ModelPanel, KeepsTheScaleWhenAFactorIsChosen) {
  ui.choose("model/scale", 3);
  EXPECT_EQ(ui.model().scale.rule, ScaleRule::factor);
  EXPECT_DOUBLE_EQ(ui.model().scale.factor, 1 / std::sqrt(2.0));
  ui.fill_in("model/factor", "0.5");
  EXPECT_EQ(ui.model().scale.factor, 0.5);
  ui.fill_in("model/factor", "nan");
  EXPECT_THAT(ui.message().text, HasSubstr("expected a number"));
  EXPECT_EQ(ui.model().scale.factor, 0.5);
}

TEST_F(ModelPanel, ChoosesScoresAndMerging) {
  ui.choose("model/scores", 1);
  EXPECT_EQ(ui.model().scores, ScoreRule::uniform);
  ui.choose("model/merge", 1);
  EXPECT_EQ(ui.model().merge, CombineRule::reshape_without_transpose);
}

TEST_F(ModelPanel, SetsAndClearsTheContextLength) {
  ui.fill_in("model/context", "8");
  EXPECT_EQ(ui.model().context_length, std::optional<std::size_t>(8));
  ui.click("model/context");
  ui.key(Key::delete_);
  ui.key(Key::enter);
  EXPECT_FALSE(ui.model().context_length.has_value());
  ui.fill_in("model/context", "2");
  EXPECT_TRUE(ui.message().is_error) << "six tokens do not fit";
  EXPECT_FALSE(ui.model().context_length.has_value());
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
  void open() {
    if (!ui.has("more/cap")) ui.click("model/more");
    ui.run();
  }
  void choose(const std::string& combo, std::size_t line) {
    open();
    ui.choose(combo, line);
  }
  void press(const std::string& name) {
    open();
    ui.click(name);
  }
  void set(const std::string& field, const std::string& text) {
    open();
    ui.fill_in(field, text);
  }
  const Additions& now() const { return ui.model().additions; }
  std::string words() const { return additions_words(ui.model(), 0); }
};

TEST_F(AdditionsPopup, OffersTheDivisorsOfTheHeadsAsGroups) {
  choose("more/groups", 1);
  EXPECT_EQ(ui.model().n_kv_heads, 2u);
  EXPECT_EQ(ui.model().projections->key.weight.n_cols(), 8u);
  EXPECT_EQ(words(), "KV heads 4 → 2");
  EXPECT_TRUE(ui.has("model/additions"));
  choose("more/groups", 2);
  EXPECT_EQ(ui.model().kv_heads(), 1u);
  choose("more/groups", 0);
  EXPECT_EQ(words(), "");
}

TEST_F(AdditionsPopup, NormsBeginWithFactorsOfOne) {
  press("more/norm/1");
  ASSERT_TRUE(now().normalize);
  EXPECT_EQ(now().normalize->rule, NormRule::rms);
  EXPECT_EQ(now().normalize->key, SharedMatrix(arma::mat(1, 4, arma::fill::ones)));
  set("more/epsilon", "0.001");
  EXPECT_EQ(now().normalize->epsilon, 0.001);
  press("more/norm/2");
  EXPECT_EQ(now().normalize->rule, NormRule::layer);
  EXPECT_EQ(now().normalize->epsilon, 0.001) << "what was typed stays";
  set("more/epsilon", "-1");
  EXPECT_THAT(ui.message().text,
              HasSubstr("normalise.epsilon: expected a finite number that is not negative"));
  EXPECT_EQ(now().normalize->epsilon, 0.001);
  EXPECT_EQ(words(), "QK LayerNorm");
  press("more/norm/0");
  EXPECT_FALSE(now().normalize);
}

TEST_F(AdditionsPopup, SetsAllOfRotaryPositions) {
  press("more/rotary");
  ASSERT_TRUE(now().positions.rotary);
  EXPECT_EQ(*now().positions.rotary, core::positions::Rotary());
  set("more/base", "500000");
  press("more/pairs/1");
  set("more/columns", "2");
  set("more/first", "-3");
  choose("more/scaling", 2);
  set("more/factor", "8");
  set("more/low", "2");
  set("more/high", "5");
  set("more/original", "64");
  core::positions::Rotary expected;
  expected.base = 500000, expected.pairs = core::positions::Pairs::neighbors, expected.dimensions = 2,
  expected.first = -3, expected.scaling = {core::positions::ScalingRule::llama3, 8, 2, 5, 64};
  EXPECT_EQ(*now().positions.rotary, expected);
  set("more/columns", "3");
  EXPECT_THAT(ui.message().text, HasSubstr("positions.rotary.dimensions"));
  set("more/base", "many");
  EXPECT_THAT(ui.message().text, HasSubstr("base: expected a finite number, found \"many\""));
  set("more/first", "0.5");
  EXPECT_THAT(ui.message().text, HasSubstr("first: expected a whole number"));
  EXPECT_EQ(*now().positions.rotary, expected) << "what was refused changed nothing";
  EXPECT_EQ(words(), "rotary adjacent");
  press("more/frequencies");
  ASSERT_TRUE(now().positions.rotary->inverse_frequencies);
  EXPECT_EQ(now().positions.rotary->inverse_frequencies->n_cols(), 1u);
  set("more/columns", "");
  EXPECT_FALSE(now().positions.rotary->inverse_frequencies) << "there are other pairs";
  press("more/rotary");
  EXPECT_EQ(now(), Additions());
}

TEST_F(AdditionsPopup, SetsWhatANormIsTakenOver) {
  using core::attention::NormScope;
  const std::size_t d_head = ui.model().d_head(), n_heads = ui.model().n_heads;
  press("more/norm/1");
  choose("more/norm_over", 2);
  EXPECT_EQ(now().normalize->over, NormScope::all_heads);
  EXPECT_EQ(now().normalize->query.n_cols(), n_heads * d_head);
  EXPECT_EQ(now().normalize->key.n_cols(), ui.model().kv_heads() * d_head);
  EXPECT_EQ(words(), "QK RMSNorm over all heads");
  choose("more/norm_over", 1);
  EXPECT_EQ(now().normalize->over, NormScope::own_head);
  choose("more/norm_over", 0);
  EXPECT_EQ(now().normalize->query.n_cols(), d_head);
}

TEST_F(AdditionsPopup, SetsTheNumbersOfEveryScaling) {
  using core::positions::ScalingRule;
  const auto scaling = [&] { return now().positions.rotary->scaling; };
  press("more/rotary");
  choose("more/scaling", 1);
  set("more/factor", "8");
  choose("more/scaling", 3);
  EXPECT_EQ(scaling().rule, ScalingRule::yarn);
  EXPECT_EQ(scaling().high, 32) << "beta_fast";
  EXPECT_NEAR(scaling().attention, 0.1 * std::log(8) + 1, 1e-15);
  set("more/low", "2");
  set("more/high", "16");
  set("more/attention", "1.25");
  press("more/truncate");
  EXPECT_EQ(scaling().low, 2);
  EXPECT_EQ(scaling().high, 16);
  EXPECT_EQ(scaling().attention, 1.25);
  EXPECT_FALSE(scaling().truncate);
  set("more/attention", "0");
  EXPECT_THAT(ui.message().text, HasSubstr("scaling.attention_factor: expected a finite number above 0"));
  choose("more/scaling", 4);
  set("more/original", "3");
  EXPECT_EQ(scaling().rule, ScalingRule::dynamic);
  EXPECT_EQ(scaling().original, 3);
  choose("more/scaling", 5);
  ASSERT_TRUE(scaling().factors);
  const std::size_t n_pairs = scaling().factors->n_cols();
  EXPECT_EQ(n_pairs, ui.model().d_head() / 2);
  std::string factors, more;
  for (std::size_t p = 0; p < n_pairs; ++p) factors += (p ? ", " : "") + std::to_string(p + 2);
  set("more/short", factors);
  EXPECT_EQ(scaling().factors->at(0, n_pairs - 1), static_cast<double>(n_pairs + 1));
  EXPECT_EQ(scaling().factors->at(1, 0), 1);
  set("more/long", factors + ", 9");
  EXPECT_THAT(ui.message().text, HasSubstr("long: expected a factor for each pair"));
  set("more/columns", "2");
  EXPECT_EQ(scaling().factors->n_cols(), 1u) << "there are fewer pairs";
}

TEST_F(AdditionsPopup, SetsBiasesOfDistances) {
  choose("more/distance", 1);
  ASSERT_TRUE(now().positions.alibi);
  press("more/slopes");
  ASSERT_TRUE(now().positions.alibi->slopes);
  EXPECT_THAT(arma::conv_to<std::vector<double>>::from(arma::mat(*now().positions.alibi->slopes)),
              ElementsAre(0.25, 0.0625, 0.015625, 0.00390625))
      << "2^(-8(h + 1)/4)";
  choose("more/distance", 2);
  EXPECT_FALSE(now().positions.alibi);
  ASSERT_TRUE(now().positions.relative);
  set("more/buckets", "8");
  set("more/max_distance", "20");
  press("more/both");
  EXPECT_EQ(now().positions.relative->table.n_rows(), 4u);
  EXPECT_EQ(now().positions.relative->table.n_cols(), 8u);
  EXPECT_EQ(now().positions.relative->max_distance, 20u);
  EXPECT_FALSE(now().positions.relative->bidirectional);
  EXPECT_EQ(words(), "8 buckets");
  set("more/buckets", "1");
  EXPECT_THAT(ui.message().text, HasSubstr("buckets: expected 2 to 4096"));
  choose("more/distance", 0);
  EXPECT_EQ(now(), Additions());
}

TEST_F(AdditionsPopup, SetsCapBiasAndSink) {
  set("more/cap", "50");
  EXPECT_EQ(now().softcap, 50);
  set("more/cap", "-2");
  EXPECT_THAT(ui.message().text, HasSubstr("cap: expected a number above 0, or nothing, found \"-2\""));
  EXPECT_EQ(now().softcap, 50);
  choose("more/bias", 1);
  ASSERT_EQ(now().score_bias.size(), 1u);
  EXPECT_EQ(now().score_bias[0], SharedMatrix(arma::mat(6, 6, arma::fill::zeros)));
  choose("more/bias", 2);
  EXPECT_EQ(now().score_bias.size(), 4u);
  press("more/sink");
  ASSERT_TRUE(now().sink);
  EXPECT_EQ(*now().sink, SharedMatrix(arma::mat(1, 4, arma::fill::zeros)));
  ui.change([](Model& m) { m.mask.window = {3, 0}; });
  EXPECT_EQ(words(), "softcap 50 · bias per head · window 3, 0 · sink");
  EXPECT_FALSE(ui.has("model/mask_rules")) << "it is said once";
  set("more/cap", "");
  choose("more/bias", 0);
  press("more/sink");
  EXPECT_EQ(now(), Additions());
  EXPECT_TRUE(ui.has("model/mask_rules"));
}

TEST_F(AdditionsPopup, GivesKeysRowsOfTheirOwn) {
  choose("more/keys", 1);
  EXPECT_TRUE(ui.model().has_key_embeddings());
  EXPECT_EQ(ui.model().sequences[0].key_embeddings, ui.model().sequences[0].embeddings);
  EXPECT_EQ(ui.model().sequences[0].keys(), ui.model().sequences[0].tokens);
  set("more/n_keys", "8");
  EXPECT_EQ(ui.model().n_keys(), 8u);
  EXPECT_EQ(ui.model().sequences[0].key_embeddings.at(0, 0), ui.model().sequences[0].embeddings.at(0, 0));
  EXPECT_EQ(ui.model().sequences[0].key_embeddings.at(7, 0), 0);
  EXPECT_EQ(ui.model().sequences[0].keys()[7], "7");
  set("more/n_keys", "no");
  EXPECT_THAT(ui.message().text, HasSubstr("encoder states: expected a whole number"));
  EXPECT_EQ(ui.model().n_keys(), 8u);
  EXPECT_EQ(words(), "8 encoder states");
  choose("more/keys", 0);
  EXPECT_FALSE(ui.model().has_key_embeddings());
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
