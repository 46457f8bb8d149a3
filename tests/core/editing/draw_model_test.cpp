#include "core/editing/draw.hpp"

#include <gtest/gtest.h>

#include "core/editing/edit.hpp"
#include "core/editing/presets.hpp"
#include "tests/golden/fixture_model.hpp"

namespace core::editing {
namespace {

attention::Model preset(const char* name) {
  return find_preset(name)->make();
}

/// The model with its learned matrices forgotten, in its own shapes.
attention::Model forgetful(attention::Model model) {
  for (attention::Linear* linear :
       {&model.projections->query, &model.projections->key, &model.projections->value})
    linear->weight = arma::mat(linear->weight->n_rows, linear->weight->n_cols, arma::fill::zeros);
  model.projections->output.reset();
  return model;
}

TEST(DrawnModel, GivesThePresetsBack) {
  ModelDraw draw;
  EXPECT_TRUE(drawn_model(forgetful(preset("004-self-attention")), draw) == preset("004-self-attention"));

  draw.before = random::parse_draw_ops("randn(6,3)");  // the notebook stacks one drawn sequence twice
  EXPECT_TRUE(drawn_model(forgetful(preset("003-causal-class")), draw) == preset("003-causal-class"));

  draw.before.clear();
  draw.embeddings = EmbeddingsDraw::rand_first;
  attention::Model words = forgetful(preset("000-causal"));
  words.sequences[0].embeddings.edit().zeros();
  EXPECT_TRUE(drawn_model(words, draw) == preset("000-causal"));

  draw.embeddings = EmbeddingsDraw::none;
  draw.output = OutputLayer::with_bias;
  EXPECT_TRUE(drawn_model(forgetful(preset("multi-head")), draw) == preset("multi-head"));
}

TEST(DrawnModel, DrawsKeysFirstAfterABatchWhenTheNotebookDoes) {
  const attention::Model expected = preset("002-full");
  attention::Model model = forgetful(expected);
  for (attention::Sequence& sequence : model.sequences) sequence.embeddings.edit().zeros();
  ModelDraw draw;
  draw.seed = 1337;
  draw.order = LayerOrder::key_query_value;
  draw.embeddings = EmbeddingsDraw::randn_first;
  EXPECT_TRUE(drawn_model(model, draw) == expected);
}

TEST(DrawnModel, EqualsTheFixtureOfTheMultiHeadClass) {
  const auto fixture = support::read_fixture("s001_mha_correct_small");
  const attention::Model expected = golden::model_of(fixture);
  attention::Model model = forgetful(expected);
  for (attention::Sequence& sequence : model.sequences) sequence.embeddings.edit().zeros();
  ModelDraw draw;
  draw.output = OutputLayer::with_bias;
  draw.embeddings = EmbeddingsDraw::randn_last;
  EXPECT_TRUE(drawn_model(model, draw) == expected);
}

TEST(DrawnModel, EqualsTheFixtureOfTheClassWithBiases) {
  const attention::Model expected = golden::model_of(support::read_fixture("s001_attention_small"));
  ModelDraw draw;
  draw.bias = true;
  draw.embeddings = EmbeddingsDraw::randn_first;
  EXPECT_TRUE(drawn_model(forgetful(expected), draw) == expected);
}

TEST(DrawnModel, KeepsTokensAndRulesAndGivesProjectionsToAModelWithoutThem) {
  attention::Model model = preset("001-dot-product");
  model.n_heads = 3;
  const attention::Model drawn = drawn_model(model, {});
  EXPECT_EQ(attention::check(drawn), std::nullopt);
  ASSERT_TRUE(drawn.projections.has_value());
  attention::Model without = drawn;
  without.projections.reset();
  EXPECT_TRUE(without == model);
}

TEST(DrawLike, HasTheLayersOfTheModel) {
  const ModelDraw two_heads = draw_like(preset("multi-head"));
  EXPECT_FALSE(two_heads.bias);
  EXPECT_EQ(two_heads.output, OutputLayer::with_bias);
  EXPECT_TRUE(draw_like(preset("001-attention")).bias);
  EXPECT_EQ(draw_like(preset("001-dot-product")).output, OutputLayer::none);
  EXPECT_EQ(draw_like(apply(preset("multi-head"), SetBias{Part::output, false})).output,
            OutputLayer::without_bias);
}

TEST(TorchLines, SayWhatIsDrawnInOrder) {
  ModelDraw draw;
  draw.seed = 7;
  draw.order = LayerOrder::key_query_value;
  draw.output = OutputLayer::with_bias;
  draw.embeddings = EmbeddingsDraw::randn_last;
  draw.before = random::parse_draw_ops("rand(6,3) Linear(3,2,bias)");
  EXPECT_EQ(torch_lines(preset("chapter-multi-head"), draw),
            "import torch\nfrom torch import nn\n\n"
            "torch.manual_seed(7)\n"
            "torch.rand(6, 3)\n"
            "nn.Linear(3, 2)\n"
            "W_k = nn.Linear(3, 2, bias=False)\n"
            "W_q = nn.Linear(3, 2, bias=False)\n"
            "W_v = nn.Linear(3, 2, bias=False)\n"
            "W_o = nn.Linear(2, 2)\n"
            "x = torch.randn(2, 6, 3)\n");
}

}  // namespace
}  // namespace core::editing
