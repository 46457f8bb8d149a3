#include <gtest/gtest.h>

#include "core/graph/attend.hpp"
#include "core/model/layer_model.hpp"
#include "tests/core/model/goldens.hpp"
#include "tests/support/error_of.hpp"

namespace core::transformer {
namespace {

using goldens::Golden;
using goldens::relative_difference;

arma::fmat in_float32(const arma::mat& numbers) {
  return arma::conv_to<arma::fmat>::from(numbers);
}

/// A layer that is looked at, in float64, has the weights of the library and the output of the pass.
TEST(LayerModel, IsTheLayerOfThePass) {
  for (const std::string name : {"gpt2", "gpt2_by_layer", "llama", "llama.gguf", "mistral", "qwen2", "qwen3",
                                 "gpt_neox", "bert", "distilbert"}) {
    const std::string folder = goldens::folder + name.substr(0, name.find('.'));
    const Transformer model = goldens::opened(goldens::folder + name);
    const Golden golden(folder + "/golden.npz");
    goldens::Tools tools;
    const auto tokens = model.tokenizer->encode(goldens::text_in(folder + "/text.txt"));
    const Pass pass = run(model, golden.ids(), {}, tools.means);
    for (std::size_t l = 0; l < model.architecture.sizes.n_layers; ++l) {
      const auto layer = layer_model(model, pass, l, token_names(*model.tokenizer, tokens), {});
      const auto trace = attention::attend(layer, 0);
      EXPECT_LT(relative_difference(in_float32(trace.output),
                                    arma::conv_to<arma::mat>::from(pass.layers[l]->output)),
                1e-5);
      for (std::size_t h = 0; h < layer.n_heads; ++h)
        EXPECT_LT(relative_difference(in_float32(trace.heads[h].weights), golden.matrix("attention", {l, h})),
                  2e-5)
            << name << " " << l << "." << h;
    }
  }
}

TEST(LayerModel, KeepsHeadsOff) {
  const std::string folder = goldens::folder + "gpt2";
  const Transformer model = goldens::opened(folder);
  goldens::Tools tools;
  const Interventions off{{{1, 1}, {0, 3}}, {}};
  const Pass pass = run(model, {1, 2, 3}, off, tools.means);
  const auto layer = layer_model(model, pass, 1, {"a", "b", "c"}, off);
  EXPECT_EQ(layer.heads_off, (std::vector<std::size_t>{1}));
  EXPECT_LT(relative_difference(in_float32(attention::attend(layer, 0).output),
                                arma::conv_to<arma::mat>::from(pass.layers[1]->output)),
            1e-5);
}

TEST(LayerModel, OfALayerThatIsNotThereIsRefused) {
  const Transformer gpt2 = goldens::opened(goldens::folder + "gpt2");
  EXPECT_EQ(support::error_of([&] { require_layer(gpt2, 2); }),
            goldens::folder + "gpt2: expected a layer below 2, got 2");
}

}  // namespace
}  // namespace core::transformer
