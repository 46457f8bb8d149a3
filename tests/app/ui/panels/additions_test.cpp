#include <gmock/gmock.h>

#include <string>

#include "app/ui/panels/heads/heads_panel.hpp"
#include "app/ui/panels/model/additions_popup.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "core/base/positions.hpp"
#include "tests/app/ui/panels/side_panels.hpp"
#include "tests/support/panels.hpp"
#include "tests/support/random_model.hpp"

namespace {

using namespace core::attention;
using app::Key;
using app::panels::additions_words;
using gui::Panels;
using testing::ElementsAre;
using testing::HasSubstr;

/// Four heads of four columns, six tokens.
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
    ui.click(combo);
    ui.run();
    ui.click(combo + "/" + std::to_string(line));
    ui.run();
  }
  void press(const std::string& name) {
    open();
    ui.click(name);
    ui.run();
  }
  void set(const std::string& field, const std::string& text) {
    press(field);
    ui.key(Key::a, {.ctrl = true});
    if (text.empty())
      ui.key(Key::delete_);
    else
      ui.type(text);
    ui.key(Key::enter);
    ui.run();
  }
  const Additions& now() const { return ui.model().additions; }
  std::string words() const { return additions_words(ui.model(), 0); }
};

TEST_F(AdditionsPopup, SaysNothingOfAPlainModelAndTakesNoRow) {
  EXPECT_EQ(words(), "");
  EXPECT_FALSE(ui.has("model/additions"));
  EXPECT_TRUE(ui.has("model/more"));
}

TEST_F(AdditionsPopup, OffersTheDivisorsOfTheHeadsAsGroups) {
  choose("more/groups", 1);
  EXPECT_EQ(ui.model().n_kv_heads, 2u);
  EXPECT_EQ(ui.model().projections->key.weight.n_cols(), 8u);
  EXPECT_EQ(words(), "grouped 4 → 2");
  EXPECT_TRUE(ui.has("model/additions"));
  choose("more/groups", 2);
  EXPECT_EQ(ui.model().n_groups(), 1u);
  choose("more/groups", 0);
  EXPECT_EQ(words(), "");
}

TEST_F(AdditionsPopup, NormsBeginWithFactorsOfOne) {
  press("more/norm/1");
  ASSERT_TRUE(now().normalise);
  EXPECT_EQ(now().normalise->rule, NormRule::rms);
  EXPECT_EQ(now().normalise->key, SharedMatrix(arma::mat(1, 4, arma::fill::ones)));
  set("more/epsilon", "0.001");
  EXPECT_EQ(now().normalise->epsilon, 0.001);
  press("more/norm/2");
  EXPECT_EQ(now().normalise->rule, NormRule::layer);
  EXPECT_EQ(now().normalise->epsilon, 0.001) << "what was typed stays";
  set("more/epsilon", "-1");
  EXPECT_THAT(ui.message().text,
              HasSubstr("normalise.epsilon: expected a finite number that is not negative"));
  EXPECT_EQ(now().normalise->epsilon, 0.001);
  EXPECT_EQ(words(), "layer norm");
  press("more/norm/0");
  EXPECT_FALSE(now().normalise);
}

TEST_F(AdditionsPopup, SetsAllOfRotaryPositions) {
  press("more/rotary");
  ASSERT_TRUE(now().positions.rotary);
  EXPECT_EQ(*now().positions.rotary, core::positions::Rotary());
  set("more/base", "500000");
  press("more/pairs/1");
  set("more/columns", "2");
  set("more/first", "-3");
  press("more/scaling/2");
  set("more/factor", "8");
  set("more/low", "2");
  set("more/high", "5");
  set("more/original", "64");
  core::positions::Rotary expected;
  expected.base = 500000, expected.pairs = core::positions::Pairs::neighbours, expected.dimensions = 2,
  expected.first = -3, expected.scaling = {core::positions::ScalingRule::llama3, 8, 2, 5, 64};
  EXPECT_EQ(*now().positions.rotary, expected);
  set("more/columns", "3");
  EXPECT_THAT(ui.message().text, HasSubstr("positions.rotary.dimensions"));
  set("more/base", "many");
  EXPECT_THAT(ui.message().text, HasSubstr("base: expected a finite number, found \"many\""));
  set("more/first", "0.5");
  EXPECT_THAT(ui.message().text, HasSubstr("first: expected a whole number"));
  EXPECT_EQ(*now().positions.rotary, expected) << "what was refused changed nothing";
  EXPECT_EQ(words(), "rotary neighbours");
  press("more/frequencies");
  ASSERT_TRUE(now().positions.rotary->inverse_frequencies);
  EXPECT_EQ(now().positions.rotary->inverse_frequencies->n_cols(), 1u);
  set("more/columns", "");
  EXPECT_FALSE(now().positions.rotary->inverse_frequencies) << "there are other pairs";
  press("more/rotary");
  EXPECT_EQ(now(), Additions());
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
  EXPECT_EQ(now().score_cap, 50);
  set("more/cap", "-2");
  EXPECT_THAT(ui.message().text, HasSubstr("cap: expected a number above 0, or nothing, found \"-2\""));
  EXPECT_EQ(now().score_cap, 50);
  choose("more/bias", 1);
  ASSERT_EQ(now().score_bias.size(), 1u);
  EXPECT_EQ(now().score_bias[0], SharedMatrix(arma::mat(6, 6, arma::fill::zeros)));
  choose("more/bias", 2);
  EXPECT_EQ(now().score_bias.size(), 4u);
  press("more/sink");
  ASSERT_TRUE(now().sink);
  EXPECT_EQ(*now().sink, SharedMatrix(arma::mat(1, 4, arma::fill::zeros)));
  ui.change([](Model& m) { m.mask.window = {3, 0}; });
  ui.run();
  EXPECT_EQ(words(), "cap 50 · bias a head · window 3, 0 · sink");
  EXPECT_FALSE(ui.has("model/mask_rules")) << "it is said once";
  set("more/cap", "");
  choose("more/bias", 0);
  press("more/sink");
  EXPECT_EQ(now(), Additions());
  EXPECT_TRUE(ui.has("model/mask_rules"));
}

TEST_F(AdditionsPopup, GivesKeysRowsOfTheirOwn) {
  choose("more/keys", 1);
  EXPECT_TRUE(ui.model().has_memory());
  EXPECT_EQ(ui.model().sequences[0].key_embeddings, ui.model().sequences[0].embeddings);
  EXPECT_EQ(ui.model().sequences[0].keys(), ui.model().sequences[0].tokens);
  set("more/n_keys", "8");
  EXPECT_EQ(ui.model().n_keys(), 8u);
  EXPECT_EQ(ui.model().sequences[0].key_embeddings.at(0, 0), ui.model().sequences[0].embeddings.at(0, 0));
  EXPECT_EQ(ui.model().sequences[0].key_embeddings.at(7, 0), 0);
  EXPECT_EQ(ui.model().sequences[0].keys()[7], "7");
  set("more/n_keys", "no");
  EXPECT_THAT(ui.message().text, HasSubstr("keys of their own: expected a whole number"));
  EXPECT_EQ(ui.model().n_keys(), 8u);
  EXPECT_EQ(words(), "8 own keys");
  choose("more/keys", 0);
  EXPECT_FALSE(ui.model().has_memory());
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
  ui.run();
  EXPECT_FALSE(ui.has("strip/group/keys"));
  ui.edit(core::editing::SetGroupCount{2});
  ui.run();
  EXPECT_TRUE(ui.has("strip/group/keys"));
  EXPECT_TRUE(ui.has("strip/group/values"));
  EXPECT_FALSE(ui.has("strip/group/queries"));
}

}  // namespace
