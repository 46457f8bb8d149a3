// Layers as models, roles of heads, direct logit attribution, the logit lens, ablation and generating.
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/graph/attend.hpp"
#include "tests/core/model/goldens.hpp"
#include "tests/support/error_of.hpp"

namespace core::transformer {
namespace {

using goldens::Golden;
using goldens::relative_difference;
using support::error_of;

constexpr std::size_t ig = 686;  // the token after "egg jam fig and egg jam f"

arma::fmat in_float32(const arma::mat& numbers) {
  return arma::conv_to<arma::fmat>::from(numbers);
}

double probability(const arma::frowvec& logits) {
  return Probabilities(logits).of(ig);
}

/// Returns what a layer's attention adds to the residual stream, tokens × d_model.
arma::mat attention_output(const Transformer& model, const LocalPass& pass, std::size_t layer,
                           const goldens::Tools& tools) {
  arma::mat output(pass.ids.size(), model.architecture().sizes.d_model);
  for (std::size_t i = 0; i < output.n_rows; ++i)
    for (std::size_t j = 0; j < output.n_cols; ++j)
      output(i, j) = model.stream(pass, layer, i, j, tools.context).attention;
  return output;
}

/// A displayed layer, in float64, has the library's weights and the output of the pass.
TEST(LayerModel, IsTheLayerOfThePass) {
  goldens::Tools tools;
  for (const std::string name :
       {"gpt2", "gpt2_by_layer", "llama", "llama.gguf", "mistral", "qwen2", "qwen3", "gpt_neox", "bert",
        "distilbert", "gemma2", "bloom", "cohere2", "modernbert"}) {
    const std::string folder = goldens::folder + name.substr(0, name.find('.'));
    const auto model = goldens::opened(goldens::folder + name);
    const Golden golden(folder + "/golden.npz");
    const auto tokens = model->tokenize(goldens::text_in(folder + "/text.txt"));
    const auto pass = goldens::run(*model, golden.ids(), tools);
    for (std::size_t l = 0; l < model->architecture().sizes.n_layers; ++l) {
      const auto layer = layer_model(*model, *pass, l, token_names(*model, tokens), {});
      const auto trace = attention::attend(layer, 0);
      EXPECT_LT(relative_difference(in_float32(trace.at(attention::Stage::output)),
                                    attention_output(*model, *pass, l, tools)),
                1e-5);
      for (std::size_t h = 0; h < layer.n_heads; ++h)
        EXPECT_LT(relative_difference(in_float32(trace.at(attention::Stage::weights, h)),
                                      golden.matrix("attention", {l, h})),
                  2e-5)
            << name << " " << l << "." << h;
    }
  }
}

/// Roles of heads against the same means of the library's weights, computed by NumPy.
TEST(Roles, AreThoseOfTheReference) {
  goldens::Tools tools;
  for (const std::string name : {"tiny_gpt", "llama", "gpt_neox", "bert"}) {
    const bool is_tiny = name == "tiny_gpt";
    const Golden golden(goldens::folder + name + (is_tiny ? ".npz" : "/golden.npz"));
    const auto model = goldens::opened(is_tiny ? goldens::tiny_gpt : goldens::folder + name);
    const auto pass = goldens::run(*model, golden.ids(), tools);
    for (std::size_t l = 0; l < pass->layers.size(); ++l) {
      const LayerHeads layer = model->maps(*pass, l, 1, 0, tools.context);
      for (std::size_t h = 0; h < layer.heads.size(); ++h) {
        const HeadRoles& roles = layer.heads[h].roles;
        const arma::mat expected = golden.matrix("roles", {l, h});
        const double got[]{roles.previous,          roles.first,       roles.itself, roles.same_token.value(),
                           roles.induction.value(), roles.entropy_bits};
        for (std::size_t k = 0; k < 6; ++k)
          EXPECT_NEAR(got[k], expected[k], 2e-5) << name << " " << l << "." << h << " " << k;
      }
    }
  }
}

/// A block is visible where any of its queries attends to any of its keys.
TEST(Maps, ShowBlocksAndWhatIsMasked) {
  goldens::Tools tools;
  for (const char* name : {"mistral", "gpt2", "bert"}) {
    const auto model = goldens::opened(goldens::folder + name);
    const auto ids = Golden(goldens::folder + name + "/golden.npz").ids();
    const auto pass = goldens::run(*model, ids, tools);
    for (const std::size_t block : {1, 2, 3}) {
      const LayerHeads layer = model->maps(*pass, 0, block, 0, tools.context);
      const arma::mat weights = arma::conv_to<arma::mat>::from(model->attention_weights(*pass, 0, 1));
      EXPECT_TRUE(arma::approx_equal(layer.heads[1].map, max_pool(weights, block), "absdiff", 0));
      ASSERT_EQ(layer.visible != nullptr, model->description().causal) << name;
      if (!layer.visible) continue;
      const arma::mat seen = arma::conv_to<arma::mat>::from(weights > 0);
      EXPECT_TRUE(arma::approx_equal(*layer.visible, max_pool(seen, block), "absdiff", 0)) << name << block;
    }
  }
}

/// The tiny GPT on that text, and NumPy's results (make_lens.py).
struct Lens : testing::Test {
  Golden golden{goldens::folder + "tiny_gpt_lens.npz"};
  std::shared_ptr<const Transformer> model = goldens::opened(goldens::tiny_gpt);
  goldens::Tools tools;
  std::vector<std::size_t> ids{68, 70, 70, 520, 383, 277, 686, 282, 302, 70, 70, 520, 383, 277};
  std::shared_ptr<const LocalPass> pass = goldens::run(*model, ids, tools);
  std::size_t row = ids.size() - 1;
};

LogitAttributions contributions_of(const Transformer& model, const LocalPass& pass, std::size_t token,
                                   const CallContext& context) {
  std::vector<arma::fmat> added;
  const std::size_t row = pass.ids.size() - 1;
  for (std::size_t l = 0; l < pass.layers.size(); ++l)
    added.push_back(model.maps(pass, l, 1, row, context).added);
  return model.logit_attributions(pass, row, token, added, context);
}

TEST_F(Lens, PartsOfALogitAreThoseOfTheReference) {
  const LogitAttributions parts = contributions_of(*model, *pass, ig, tools.context);
  for (std::size_t l = 0; l < 4; ++l) {
    for (std::size_t h = 0; h < 4; ++h)
      EXPECT_NEAR(parts.heads[l][h], golden.matrix("heads")(l, h), 1e-4) << l << "." << h;
    EXPECT_NEAR(parts.mlps[l], golden.matrix("mlps")[l], 1e-4) << l;
    EXPECT_NEAR(parts.output_biases[l], golden.matrix("besides")[l], 1e-4) << l;
  }
  EXPECT_NEAR(parts.embedding, golden.matrix("embedding")[0], 1e-4);
  EXPECT_NEAR(parts.constant, golden.matrix("constant")[0], 1e-4);
}

/// In every family: RoPE, GQA, RMSNorm, an MLP parallel to attention.
TEST(LogitAttributions, AddUpToTheLogitInEveryFamilyThatHasThem) {
  goldens::Tools tools;
  for (const char* name :
       {"gpt2", "llama", "mistral", "qwen2", "qwen3", "gpt_neox", "gpt_neox_serial", "bloom", "cohere2"}) {
    const auto model = goldens::opened(goldens::folder + name);
    const Golden golden(goldens::folder + name + "/golden.npz");
    const auto pass = goldens::run(*model, golden.ids(), tools, {AblatedHead{1, 1}});
    const arma::frowvec logits = model->next(*pass, pass->ids.size() - 1, tools.context);
    for (const std::size_t token : {std::size_t{3}, std::size_t{200}}) {
      const LogitAttributions parts = contributions_of(*model, *pass, token, tools.context);
      EXPECT_NEAR(parts.sum(), logits[token], 2e-4 * (1 + std::abs(logits[token]))) << name << " " << token;
      EXPECT_EQ(parts.heads[1][1], 0) << name;
    }
  }
  const std::string bert = goldens::folder + "bert";
  const auto model = goldens::opened(bert);
  EXPECT_FALSE(model->description().has_logit_attributions);
  const auto pass = goldens::run(*model, {1, 2, 3}, tools);
  EXPECT_EQ(error_of([&] { model->logit_attributions(*pass, 0, 1, {}, tools.context); }),
            bert + ": its logits are not sums over heads, as norms come after attention");
}

TEST_F(Lens, LayersPredictWhatTheReferencePredicts) {
  const arma::fmat logits = model->lens(*pass, row, tools.context);
  EXPECT_LT(relative_difference(logits, golden.matrix("lens")), 1e-5);
  EXPECT_NEAR(probability(logits.row(3)), 0.9287, 2e-3);  // of the float32 parameters
}

TEST_F(Lens, AblationDoesWhatItDoesInTheReference) {
  const auto logits_without = [&](const std::vector<PassEdit>& edits) {
    return model->next(*model->run(ids, edits, tools.context), row, tools.context);
  };
  for (std::size_t l = 0; l < 4; ++l)
    for (std::size_t h = 0; h < 4; ++h) {
      const arma::frowvec logits = logits_without({AblatedHead{l, h}});
      EXPECT_NEAR(logits[ig], golden.matrix("off_logit")(l, h), 1e-4) << l << "." << h;
      EXPECT_NEAR(probability(logits), golden.matrix("off_probability")(l, h), 2e-5) << l << "." << h;
    }
  EXPECT_NEAR(probability(logits_without({AblatedHead{2, 3}, AblatedHead{2, 0}})),
              golden.matrix("both_off")[0], 2e-5);
}

/// An output computed elsewhere feeds the later layers, and a pass up to a layer has its input.
TEST_F(Lens, AnotherOutputTakesThePlaceOfALayers) {
  const auto set = [](std::size_t layer, const arma::fmat& output) {
    return PassEdit(SetOutput{layer, std::make_shared<const arma::fmat>(output)});
  };
  const auto last = [&](const PassRef& of) { return model->residual(*of, 4, tools.context); };
  const arma::fmat before = last(pass);
  const auto same = goldens::run(*model, ids, tools, {set(2, pass->layers[2]->output.matrix())});
  EXPECT_TRUE(arma::approx_equal(last(same), before, "absdiff", 0));
  EXPECT_EQ(same->computation_id(1), pass->computation_id(1));
  EXPECT_NE(same->computation_id(2), pass->computation_id(2));
  const PassEdit zeros = set(1, arma::fmat(arma::size(before), arma::fill::zeros));
  const auto part = model->run(ids, {zeros}, tools.context, 2);
  const auto all = goldens::run(*model, ids, tools, {zeros});
  EXPECT_EQ(part->computation_id(1), all->computation_id(1));
  EXPECT_TRUE(arma::approx_equal(model->input(*part, 2), model->input(*all, 2), "absdiff", 0));
  EXPECT_FALSE(arma::approx_equal(last(all), before, "absdiff", 1e-3));
}

/// Token by token on a kept pass, and with a KV cache alone, against a whole pass.
TEST(TextGoesOn, AsAWholePassDoes) {
  goldens::Tools tools;
  for (const char* name : {"gpt2", "llama", "mistral", "qwen3", "gpt_neox", "gemma2", "bloom", "cohere2"}) {
    const auto model = goldens::opened(goldens::folder + name);
    const Golden golden(goldens::folder + name + "/golden.npz");
    const auto ids = golden.ids();
    const arma::mat expected = golden.matrix("logits");
    PassRef pass;
    for (std::size_t n = 3; n <= ids.size(); ++n) {
      pass = model->run({ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n)}, {}, tools.context);
      EXPECT_LT(relative_difference(model->next(*pass, n - 1, tools.context), expected.row(n - 1)), 2e-5)
          << name;
    }
    random::Generator generator(1);
    const auto made = model->generate(ids, {}, 4, {}, generator, tools.context);
    std::vector<std::size_t> all = ids;
    for (const std::size_t id : made) {
      pass = nullptr;  // nothing to reuse
      pass = model->run(all, {}, tools.context);
      EXPECT_EQ(
          id, top_tokens(model->next(*pass, all.size() - 1, tools.context), 1, model->description().n_tokens)
                  .front()
                  .id)
          << name;
      all.push_back(id);
    }
  }
}

TEST(TextGoesOn, AsFarAsTheModelTakes) {
  goldens::Tools tools;
  random::Generator generator(1);
  const std::string gpt2 = goldens::folder + "gpt2", bert = goldens::folder + "bert";
  EXPECT_EQ(error_of([&] {
              goldens::opened(gpt2)->generate(std::vector<std::size_t>(60), {}, 5, {}, generator,
                                              tools.context);
            }),
            gpt2 + ": expected at most 64 tokens, as many as the model takes at once, got 60 and 5 more");
  EXPECT_EQ(error_of([&] { goldens::opened(bert)->generate({1}, {}, 1, {}, generator, tools.context); }),
            bert + ": this model is bidirectional, so it cannot continue a text");
}

TEST(Sampled, OfTheTopOneIsTheMostProbableAndASeedIsFollowed) {
  const arma::frowvec logits{0, 2, 1.5f, -1};
  random::Generator generator(1), again(1);
  EXPECT_EQ(sample_token(logits, 4, {0, 0}, generator), 1u);
  EXPECT_EQ(sample_token(logits, 4, {1.5, 1}, generator), 1u);
  std::vector<std::size_t> counts(4);
  for (int k = 0; k < 2000; ++k) ++counts[sample_token(logits, 4, {0.5, 2}, generator)];
  EXPECT_EQ(counts[0] + counts[3], 0u);
  EXPECT_NEAR(counts[1] / 2000.0, 1 / (1 + std::exp(-1.0)), 0.04);  // logits 4 and 3
  sample_token(logits, 4, {1.5, 1}, again);
  for (int k = 0; k < 2000; ++k) sample_token(logits, 4, {0.5, 2}, again);
  EXPECT_EQ(generator.next_u32(), again.next_u32());
  // The smallest temperatures of float64, where float32 would divide to infinity.
  for (const double temperature : {1e-40, 1e-300, 5e-324}) {
    EXPECT_EQ(sample_token({-3, -1, -2, -90}, 4, {temperature, 0}, generator), 1u) << temperature;
    EXPECT_EQ(sample_token({3, 1, 2, 9}, 4, {temperature, 3}, generator), 3u) << temperature;
  }
}

}  // namespace
}  // namespace core::transformer
