#include "core/training/network.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>

#include "core/files/tensor_formats.hpp"
#include "core/training/optimizer.hpp"

namespace core::training {
namespace {

constexpr std::size_t n_steps = 50, n_tokens = 12, n_vocabulary = 16, batch_size = 4;

/// Returns the batches of tests/fixtures/training/make.py: random tokens, of which the previous one is to be
/// predicted.
std::vector<std::vector<Sample>> batches() {
  random::Generator generator(7);
  const auto tokens = generator.randint(n_steps * batch_size * n_tokens, 0, n_vocabulary);
  std::vector<std::vector<Sample>> all(n_steps, std::vector<Sample>(batch_size));
  for (std::size_t k = 0; k < tokens.size(); ++k) {
    Sample& sample = all[k / n_tokens / batch_size][k / n_tokens % batch_size];
    sample.targets.push_back(sample.tokens.empty() ? std::nullopt : std::optional(sample.tokens.back()));
    sample.tokens.push_back(static_cast<std::size_t>(tokens[k]));
  }
  return all;
}

struct GoldenRun {
  const char* file;
  TrainingSetup setup;
};

std::vector<GoldenRun> golden_runs() {
  TrainingSetup learned, rotary, alibi, plain;
  learned.d_model = rotary.d_model = alibi.d_model = plain.d_model = 16;
  learned.n_heads = 2;
  rotary.n_layers = 2, rotary.n_heads = 2, rotary.n_kv_heads = 1, rotary.d_mlp = 32;
  rotary.positions = PositionChoice::rotary;
  alibi.n_layers = 2, alibi.n_heads = 4, alibi.positions = PositionChoice::alibi,
  alibi.norm = NormChoice::rms;
  alibi.causal = false;
  plain.positions = PositionChoice::none, plain.norm = NormChoice::none, plain.d_mlp = 24;
  for (TrainingSetup* setup : {&alibi, &plain}) setup->optimizer = OptimizerChoice::sgd, setup->rate = 5e-2;
  return {{"learned", learned}, {"rotary", rotary}, {"alibi", alibi}, {"plain", plain}};
}

TEST(Network, LearnsToTheNumbersOfPyTorch) {
  for (const GoldenRun& run : golden_runs()) {
    const auto golden = formats::open_tensors(std::string(FIXTURES "/training/") + run.file + ".safetensors");
    Network network(run.setup, n_vocabulary, n_tokens);
    Optimizer optimizer;
    const arma::mat losses = formats::matrix(golden.read("losses"));
    const auto all = batches();
    for (std::size_t step = 0; step < n_steps; ++step) {
      NetworkPass pass(network, all[step], step);
      EXPECT_NEAR(pass.loss(), losses[step], 1e-12 * losses.max()) << run.file << " step " << step;
      optimizer.step(network, pass.gradients());
    }
    EXPECT_EQ(network.parameters().size() + 1, golden.tensors().size()) << run.file;
    for (const NetworkParameter& parameter : network.parameters()) {
      const arma::mat expected = formats::matrix(golden.read(parameter.name));
      ASSERT_EQ(arma::size(expected), arma::size(**parameter.numbers)) << run.file << " " << parameter.name;
      // A softmax ignores a constant of its row, so the gradient of the key bias is rounding noise without
      // RoPE.
      const bool is_noise =
          parameter.name.ends_with("key_bias") && run.setup.positions != PositionChoice::rotary;
      const double largest = arma::abs(expected).max(), tolerance = is_noise ? 1e-10 : 1e-12 * largest;
      EXPECT_LE(arma::abs(expected - **parameter.numbers).max(), tolerance)
          << run.file << " " << parameter.name;
    }
  }
}

}  // namespace
}  // namespace core::training
