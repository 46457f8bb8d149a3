#include "tests/support/fixture_model.hpp"

namespace support {
namespace {

using namespace core::attention;

/// PyTorch's layout, d_out × d_in, turned over.
Linear linear(const Fixture& fixture, const std::string& letter) {
  Linear l{arma::mat(fixture.tensors.at("W_" + letter).matrix().t()), std::nullopt};
  const auto bias = fixture.tensors.find("b_" + letter);
  if (bias != fixture.tensors.end()) l.bias = bias->second.matrix();
  return l;
}

}  // namespace

Model model_of(const Fixture& fixture) {
  const Config& config = fixture.config;
  Model model;
  for (std::size_t s = 0; s < config.n_sequences; ++s)
    model.sequences.push_back({numbered_tokens(config.n_tokens), fixture.tensors.at("inputs").matrix({s})});
  if (config.projections) {
    model.projections = {linear(fixture, "q"), linear(fixture, "k"), linear(fixture, "v"), std::nullopt};
    if (config.output_projection) model.projections->output = linear(fixture, "o");
  }
  model.n_heads = config.n_heads;
  model.scale = {ScaleRule::factor, config.scale};
  model.mask.causal = config.mask_mode != "none";
  if (config.mask_mode == "renormalise") model.mask.method = MaskMethod::renormalise;
  if (config.merge == "reshape_without_transpose") model.merge = MergeRule::reshape_without_transpose;
  model.dropout.rate = config.dropout_rate;
  if (const auto mask = fixture.tensors.find("keep_mask"); mask != fixture.tensors.end())
    for (std::size_t s = 0; s < config.n_sequences; ++s)
      for (std::size_t h = 0; h < config.n_heads; ++h)
        model.dropout.given.push_back(mask->second.matrix({s, h}));
  return model;
}

}  // namespace support
