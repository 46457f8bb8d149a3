#include "tests/golden/fixture_model.hpp"

#include <gtest/gtest.h>

#include "core/engine/engine.hpp"
#include "core/graph/attend.hpp"
#include "tests/support/matchers.hpp"

namespace golden {

using namespace core::attention;
using support::Config;
using support::Fixture;
using support::is_near;
using support::Tensor;

namespace {

Linear linear_of(const Fixture& f, const std::string& letter, bool bias) {
  Linear linear;
  linear.weight = arma::mat(f.tensors.at("W_" + letter).matrix().t());
  if (bias) linear.bias = f.tensors.at("b_" + letter).matrix();
  return linear;
}

/// Returns the columns of one head.
arma::mat head_of(const arma::mat& all, std::size_t head, std::size_t n_heads) {
  const std::size_t width = all.n_cols / n_heads;
  return all.cols(head * width, (head + 1) * width - 1);
}

/// Stages with one matrix per head, by the fixture's names.
const std::map<std::string, Stage> head_stages{
    {"scores", Stage::scores},
    {"scaled", Stage::scaled_scores},
    {"masked", Stage::masked_scores},
    {"weights_unmasked", Stage::unmasked_weights},
    {"weights_zeroed", Stage::zeroed_weights},
    {"row_sums", Stage::row_sums},
    {"weights", Stage::weights},
    {"dropped", Stage::dropped_weights},
    {"context_heads", Stage::contexts},
};
const std::map<std::string, Stage> projected_stages{
    {"Q", Stage::queries}, {"K", Stage::keys}, {"V", Stage::values}};
const std::map<std::string, Stage> sequence_stages{
    {"inputs", Stage::embeddings}, {"concat", Stage::concatenated}, {"output", Stage::output}};

void expect_tensor(const std::string& name, const Tensor& tensor, const Config& config, std::size_t s,
                   const Trace& trace) {
  const double tolerance = tensor.absolute;
  if (const auto stage = sequence_stages.find(name); stage != sequence_stages.end()) {
    EXPECT_TRUE(is_near(trace.at(stage->second), tensor.matrix({s}), tolerance));
    return;
  }
  for (std::size_t h = 0; h < config.n_heads; ++h) {
    SCOPED_TRACE("head " + std::to_string(h));
    if (const auto stage = projected_stages.find(name); stage != projected_stages.end())
      EXPECT_TRUE(
          is_near(trace.at(stage->second, h), head_of(tensor.matrix({s}), h, config.n_heads), tolerance));
    else if (const auto own = head_stages.find(name); own != head_stages.end())
      EXPECT_TRUE(is_near(trace.at(own->second, h), tensor.matrix({s, h}), tolerance));
    else if (name == "keep_mask")
      EXPECT_TRUE(is_near(trace.at(Stage::dropout_mask, h),
                          tensor.matrix({s, h}) * (1 / (1 - config.dropout_rate)), tolerance));
    else
      ADD_FAILURE() << "the test does not know this tensor";
  }
}

void expect_stages_of_sequence(const Fixture& fixture, const Model& model, std::size_t s,
                               const Trace& trace) {
  ASSERT_EQ(model.n_heads, fixture.config.n_heads);
  for (const auto& [name, tensor] : fixture.tensors) {
    if (name.starts_with("W_") || name.starts_with("b_")) continue;  // parameters
    SCOPED_TRACE(name + ", sequence " + std::to_string(s));
    expect_tensor(name, tensor, fixture.config, s, trace);
  }
}

}  // namespace

Model model_of(const Fixture& f) {
  const Config& c = f.config;
  Model m;
  for (std::size_t s = 0; s < c.n_sequences; ++s)
    m.sequences.push_back({numbered_tokens(c.n_tokens), f.tensors.at("inputs").matrix({s})});
  if (c.projections) {
    m.projections = Projections{linear_of(f, "q", c.qkv_bias), linear_of(f, "k", c.qkv_bias),
                                linear_of(f, "v", c.qkv_bias), std::nullopt};
    if (c.output_projection) m.projections->output = linear_of(f, "o", c.output_bias);
  }
  m.n_heads = c.n_heads;
  m.scale = {ScaleRule::factor, c.scale};
  m.mask.causal = c.causal;
  m.mask.method = c.mask_mode == "renormalise" ? MaskMethod::renormalize : MaskMethod::negative_infinity;
  m.dropout.rate = c.dropout_rate;
  if (c.dropout_rate > 0)
    for (std::size_t s = 0; s < c.n_sequences; ++s)
      for (std::size_t h = 0; h < c.n_heads; ++h)
        m.dropout.given.push_back(f.tensors.at("keep_mask").matrix({s, h}));
  m.merge = c.merge == "concat" ? CombineRule::concatenate : CombineRule::reshape_without_transpose;
  return m;
}

void expect_stages(const Fixture& fixture, const Model& model) {
  for (std::size_t s = 0; s < fixture.config.n_sequences; ++s)
    expect_stages_of_sequence(fixture, model, s, attend(model, s));
}

void expect_stages_of_engine(const Fixture& fixture, const Model& model) {
  core::attention::fast::Engine engine;
  for (std::size_t s = 0; s < fixture.config.n_sequences; ++s) {
    ASSERT_TRUE(engine.compute(model, s));
    expect_stages_of_sequence(fixture, model, s, engine.trace());
  }
}

void expect_printed(const Fixture& fixture, const Model& model) {
  const Trace trace = attend(model);
  for (const auto& [name, tensor] : fixture.printed) {
    SCOPED_TRACE("printed " + name);
    const arma::mat& found = name == "output" ? *trace.at(Stage::output) : *trace.at(head_stages.at(name));
    EXPECT_TRUE(is_near(found, tensor.matrix(), tensor.absolute, tensor.relative));
  }
}

void expect_same_inputs(const Model& found, const Model& expected) {
  for (std::size_t s = 0; s < expected.sequences.size(); ++s)
    EXPECT_TRUE(found.sequences.at(s).embeddings == expected.sequences[s].embeddings) << "sequence " << s;
  EXPECT_TRUE(found.projections == expected.projections);
}

}  // namespace golden
