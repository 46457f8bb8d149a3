// Tensors that are missing, or of shapes that nothing else of a model fits.
#include <gtest/gtest.h>

#include <cmath>

#include "core/model/transformer.hpp"
#include "tests/core/check/check_fixture.hpp"
#include "tests/core/model/goldens.hpp"
#include "tests/support/error_of.hpp"

namespace core::transformer {
namespace {

using formats::Tensor;
using support::error_of;

/// A model whose tensors can be changed before its weights are made of them.
struct Changed {
  explicit Changed(const std::string& name)
      : model(goldens::opened(goldens::folder + name)), architecture(model->architecture()) {
    for (const auto& info : model->weights().file().tensors())
      tensors.push_back(model->weights().file().read(info.name));
  }
  Tensor& tensor(const std::string& name) {
    return *std::ranges::find_if(tensors, [&](const Tensor& t) { return t.name.ends_with(name); });
  }
  void remove(const std::string& name) {
    std::erase_if(tensors, [&](const Tensor& t) { return t.name.ends_with(name); });
  }
  void add(const std::string& name, const formats::Shape& shape, double number) {
    Tensor added;
    added.name = name, added.shape = shape;
    added.numbers.assign(*formats::count_of(shape), number);
    tensors.push_back(std::move(added));
  }
  void reshape(const std::string& name, const formats::Shape& shape) {
    tensor(name).shape = shape;
    tensor(name).numbers.resize(*formats::count_of(shape));
  }
  std::shared_ptr<const Transformer> made() const {
    const auto weights =
        std::make_shared<const Weights>(support::tensors_in_memory(tensors), architecture, 1 << 24);
    return std::make_shared<const Transformer>(
        "memory", architecture, weights, std::make_shared<const tokenizers::Tokenizer>(model->tokenizer()));
  }
  std::string error() const {
    return error_of([&] { made(); });
  }
  arma::fmat last() const {
    goldens::Tools tools;
    return goldens::run(*made(), {5, 9, 2, 14}, tools)->last;
  }

  std::shared_ptr<const Transformer> model;
  Architecture architecture;
  std::vector<Tensor> tensors;
};

bool are_equal(const arma::fmat& a, const arma::fmat& b) {
  return arma::approx_equal(a, b, "absdiff", 0);
}

TEST(MissingBias, OfKeysCountsAsZeros) {
  Changed zeros("qwen2"), none("qwen2");
  for (const std::string layer : {"0", "1"}) {
    const std::string name = "layers." + layer + ".self_attn.k_proj.bias";
    std::ranges::fill(zeros.tensor(name).numbers, 0);
    none.remove(name);
  }
  EXPECT_TRUE(are_equal(none.last(), zeros.last()));
  EXPECT_FALSE(are_equal(none.last(), Changed("qwen2").last()));
}

TEST(MissingBias, OfOneHalfOfAGatedMlpCountsAsZeros) {
  const std::string mlp = "model.layers.1.mlp.";
  Changed zeros("llama"), none("llama");
  const std::size_t d_hidden = none.architecture.sizes.d_hidden;
  for (Changed* each : {&zeros, &none}) each->add(mlp + "up_proj.bias", {d_hidden}, 0.5);
  zeros.add(mlp + "gate_proj.bias", {d_hidden}, 0);
  EXPECT_TRUE(are_equal(none.last(), zeros.last()));
  EXPECT_FALSE(are_equal(none.last(), Changed("llama").last()));
}

TEST(TensorShapes, OfFusedProjectionsAreThoseOfAllHeads) {
  Changed changed("gpt_neox");
  changed.reshape("layers.0.attention.query_key_value.weight", {48, 32});
  EXPECT_EQ(
      changed.error(),
      "memory: gpt_neox.layers.0.attention.query_key_value.weight: expected [96, 32] by the sizes of the "
      "model, got [48, 32]");
}

TEST(TensorShapes, OfEverythingThatIsReadAreChecked) {
  const struct {
    const char *model, *tensor;
    formats::Shape shape;
    const char* expected;
  } cases[]{
      {"bert", "token_type_embeddings.weight", {2, 1}, "at least 1 rows of 24 numbers, got [2, 1]"},
      {"bert", "transform.dense.weight", {12, 24}, "[24, 24] by the sizes of the model, got [12, 24]"},
      {"bert", "transform.dense.bias", {12}, "[24] by the sizes of the model, got [12]"},
      {"bert", "transform.LayerNorm.weight", {12}, "[24] by the sizes of the model, got [12]"},
      {"bert", "transform.LayerNorm.bias", {48}, "[24] by the sizes of the model, got [48]"},
      {"bert", "cls.predictions.bias", {259}, "at least 260 numbers, got [259]"},
      {"roberta", "lm_head.bias", {2, 380}, "at least 380 numbers, got [2, 380]"},
      {"roberta", "position_embeddings.weight", {1, 24}, "at least 66 rows of 24 numbers, got [1, 24]"},
  };
  for (const auto& [model, tensor, shape, expected] : cases) {
    Changed changed(model);
    changed.reshape(tensor, shape);
    EXPECT_EQ(changed.error(), "memory: " + changed.tensor(tensor).name + ": expected " + expected);
  }
}

/// What cannot be looked at in a layer would be computed otherwise there than in the pass.
TEST(NormsOfHeads, StandOnBothSidesWithoutBiases) {
  Changed one_side("qwen3"), biased("qwen3");
  one_side.remove("layers.1.self_attn.k_norm.weight");
  EXPECT_EQ(one_side.error(),
            "memory: expected a tensor model.layers.1.self_attn.k_norm.weight, there is none");
  biased.add("model.layers.0.self_attn.q_norm.bias", {8}, 1);
  EXPECT_EQ(biased.error(),
            "memory: model.layers.0.self_attn.q_norm.bias: expected none, as norms of heads have factors "
            "alone");
  Changed other_norm("qwen3");
  other_norm.architecture.norm.kind = NormKind::layer;
  EXPECT_EQ(
      other_norm.error(),
      "memory: model.layers.0.self_attn.q_norm.weight: expected none, as only RMS norms of heads can be "
      "computed");
}

/// What a model says of the scores behind four tokens when one of its numbers is none.
std::string error_of_scores(const std::string& model, const std::string& tensor, std::size_t at,
                            double number) {
  Changed changed(model);
  changed.tensor(tensor).numbers.at(at) = number;
  const auto made = changed.made();
  goldens::Tools tools;
  return error_of([&] { made->logits_of(goldens::run(*made, {5, 9, 2, 14}, tools)->last, tools.means); });
}

TEST(NumbersThatAreNone, AreRefusedByTheTensorWhereTheyBegin) {
  const std::string begin = "memory: numbers that are not finite begin in ";
  for (const double number : {std::nan(""), 1 / 0., -1 / 0.}) {
    EXPECT_EQ(error_of_scores("gpt2", "wte.weight", 300 * 24 + 3, number),  // of no token of the text
              begin + "what predicts tokens, in transformer.wte.weight, row 300");
    EXPECT_EQ(error_of_scores("gpt2", "wte.weight", 9 * 24, number),
              begin + "the embeddings, in transformer.wte.weight, row 9");
    EXPECT_EQ(error_of_scores("gpt2", "wpe.weight", 2 * 24, number),
              begin + "the embeddings, in transformer.wpe.weight, row 2");
    EXPECT_EQ(error_of_scores("gpt2", "ln_f.bias", 7, number),
              begin + "what predicts tokens, in transformer.ln_f.bias");
    EXPECT_EQ(error_of_scores("gpt2", "h.1.mlp.c_fc.weight", 2 * 96, number),
              begin + "layer 1, in transformer.h.1.mlp.c_fc.weight, row 2");
    EXPECT_EQ(error_of_scores("gpt_neox", "embed_out.weight", 200 * 32 + 1, number),
              begin + "what predicts tokens, in embed_out.weight, row 200");
    EXPECT_EQ(error_of_scores("bert", "cls.predictions.bias", 11, number),
              begin + "what predicts tokens, in cls.predictions.bias");
  }
  EXPECT_EQ(error_of_scores("gpt2", "wte.weight", 300 * 24 + 3, 1), "no error");
  EXPECT_EQ(error_of_scores("gpt2", "ln_f.weight", 7, 3e38),  // finite, and too large for its products
            begin + "what predicts tokens, of finite weights");
}

}  // namespace
}  // namespace core::transformer
