#include <gtest/gtest.h>

#include <algorithm>

#include "tests/core/model/goldens.hpp"

namespace core::transformer {
namespace {

using goldens::Golden;
using goldens::relative_difference;

void expect_logits(const arma::fmat& logits, const Golden& golden) {
  EXPECT_LT(relative_difference(logits, golden.matrix("logits")), 1e-5);
  EXPECT_EQ(goldens::top_five(arma::conv_to<arma::mat>::from(logits)),
            goldens::top_five(golden.matrix("logits")));
}

class ModelOf : public testing::TestWithParam<const char*> {};

/// Every layer, every head's weights and every logit against transformers.
TEST_P(ModelOf, IsComputedAsTheLibraryDoes) {
  const std::string name = GetParam(), folder = goldens::folder + name.substr(0, name.find('.'));
  const auto model = goldens::opened(goldens::folder + name);
  const Golden golden(folder + "/golden.npz");
  goldens::Tools tools;
  const auto ids = goldens::ids_of(*model, goldens::text_in(folder + "/text.txt"));
  ASSERT_EQ(ids, golden.ids());
  const auto result = goldens::run(*model, ids, tools);
  const Sizes& sizes = model->architecture().sizes;
  for (std::size_t l = 0; l < sizes.n_layers; ++l) {
    EXPECT_LT(relative_difference(result->layers[l]->residual.matrix(), golden.matrix("hidden", {l})), 1e-5)
        << l;
    for (std::size_t h = 0; h < sizes.n_heads; ++h)
      EXPECT_LT(
          relative_difference(model->attention_weights(*result, l, h), golden.matrix("attention", {l, h})),
          2e-5)
          << l << "." << h;
  }
  const arma::fmat last = model->residual(*result, sizes.n_layers, tools.context);
  EXPECT_LT(relative_difference(model->apply_final_norm(last, tools.context),
                                golden.matrix("hidden", {sizes.n_layers})),
            1e-5);
  EXPECT_EQ(model->description().no_prediction_reason.empty(), golden.has("logits"));
  if (!golden.has("logits")) return;
  expect_logits(model->compute_logits(last, tools.context), golden);
}

TEST_P(ModelOf, GoesOnFromALayerWithAHeadOff) {
  const std::string name = GetParam(), folder = goldens::folder + name.substr(0, name.find('.'));
  const Golden golden(folder + "/golden.npz");
  if (!golden.has("without_1_1")) GTEST_SKIP() << "it predicts nothing";
  const auto model = goldens::opened(goldens::folder + name);
  goldens::Tools tools;
  const std::vector<PassEdit> off{AblatedHead{1, 1}};
  const auto anew = goldens::run(*model, golden.ids(), tools, off);
  const auto before = goldens::run(*model, golden.ids(), tools);
  const auto after =
      goldens::run(*model, golden.ids(), tools, {AblatedHead{1, 1}, AblatedHead{7, 0}, AblatedHead{0, 99}});
  EXPECT_EQ(after->computation_id(1), anew->computation_id(1));
  EXPECT_EQ(after->computation_id(0), before->computation_id(0));
  EXPECT_NE(after->computation_id(1), before->computation_id(1));
  EXPECT_LT(relative_difference(model->next(*after, golden.ids().size() - 1, tools.context),
                                golden.matrix("without_1_1")),
            1e-5);
}

INSTANTIATE_TEST_SUITE_P(Transformer, ModelOf,
                         testing::Values("gpt2", "gpt2_by_layer", "llama", "mistral", "qwen2", "qwen3",
                                         "gpt_neox", "gpt_neox_serial", "bert", "bert_headless", "distilbert",
                                         "roberta", "bert_untied", "roberta_untied", "roberta_relu",
                                         "roberta_padded", "llama_partial", "gemma2", "bloom", "cohere2",
                                         "qwen2_moe", "modernbert", "gpt2.gguf", "llama.gguf", "qwen2.gguf",
                                         "qwen3.gguf", "gpt_neox.gguf", "bert_headless.gguf"),
                         [](const auto& of) {
                           std::string name = of.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

/// A trained model against its reference in NumPy's float64.
TEST(WholeTinyGpt, IsComputedAsItsReferenceDoes) {
  const auto model = goldens::opened(goldens::tiny_gpt);
  const Golden golden(goldens::folder + "tiny_gpt.npz");
  goldens::Tools tools;
  const auto result = goldens::run(*model, golden.ids(), tools);
  for (std::size_t l = 0; l < 4; ++l) {
    const std::string layer = "L" + std::to_string(l) + ".";
    const LayerActivations& of = *result->layers[l];
    EXPECT_LT(relative_difference(model->input(*result, l), golden.matrix(layer + "ln_1")), 1e-5) << l;
    const arma::fmat left = model->residual(*result, l + 1, tools.context);
    EXPECT_LT(relative_difference(left, golden.matrix(layer + "out")), 1e-5) << l;
    for (std::size_t h = 0; h < 4; ++h) {
      EXPECT_LT(relative_difference(of.queries[h].matrix(), golden.matrix(layer + "q", {h})), 1e-5);
      EXPECT_LT(relative_difference(of.keys[h].matrix(), golden.matrix(layer + "k", {h})), 1e-5);
      EXPECT_LT(relative_difference(of.values[h].matrix(), golden.matrix(layer + "v", {h})), 1e-5);
      EXPECT_LT(
          relative_difference(model->attention_weights(*result, l, h), golden.matrix(layer + "attn", {h})),
          1e-5);
    }
  }
  expect_logits(model->compute_logits(model->residual(*result, 4, tools.context), tools.context), golden);
}

/// With nothing kept in memory everything is reread where it is used, the predictions in parts.
TEST(WholeTinyGpt, IsTheSameWhenNothingIsKept) {
  const std::shared_ptr<const Transformer> kept = goldens::opened(goldens::tiny_gpt),
                                           read = open_transformer(goldens::tiny_gpt, 0);
  goldens::Tools tools;
  const std::vector<std::size_t> ids{10, 200, 30};
  for (int round = 0; round < 2; ++round)
    for (std::size_t row = 0; row < ids.size(); ++row)
      EXPECT_TRUE(arma::approx_equal(read->next(*read->run(ids, {}, tools.context), row, tools.context),
                                     kept->next(*kept->run(ids, {}, tools.context), row, tools.context),
                                     "absdiff", 0));
}

/// Equal to the last bit for any number of threads, whether a token is read with the others or after them.
TEST(WholeTinyGpt, IsTheSameOnAnyThreadsAndTokenByToken) {
  const auto model = goldens::opened(goldens::tiny_gpt);
  const std::vector<std::size_t> ids = Golden(goldens::folder + "tiny_gpt.npz").ids();
  goldens::Tools tools;
  ThreadPool one(1);
  const CallContext alone{one, tools.token};
  const PassRef whole = model->run(ids, {}, tools.context);
  const arma::fmat expected = model->residual(*whole, 4, tools.context);
  const arma::frowvec logits = model->next(*whole, ids.size() - 1, tools.context);
  PassRef pass;
  for (std::size_t n = 1; n < ids.size(); ++n) {
    pass = model->run({ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n)}, {}, alone);
    EXPECT_TRUE(arma::approx_equal(model->next(*pass, n - 1, alone),
                                   model->next(*whole, n - 1, tools.context), "absdiff", 0))
        << n;
  }
  const auto anew = goldens::opened(goldens::tiny_gpt);
  const PassRef again = anew->run(ids, {}, alone);
  EXPECT_TRUE(arma::approx_equal(anew->residual(*again, 4, alone), expected, "absdiff", 0));
  EXPECT_TRUE(arma::approx_equal(anew->next(*again, ids.size() - 1, alone), logits, "absdiff", 0));
}

}  // namespace
}  // namespace core::transformer
