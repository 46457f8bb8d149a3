#pragma once

#include <cstdint>

#include "core/graph/model.hpp"

/// The models of the five teaching notebooks, 000 to 004, drawn as their code draws them.
namespace core::editing::notebooks {

/// 000: six words × 3 features, 3 → 3, causal, seed 123.
attention::Model causal_step_by_step();

/// 001: the sentence without projections, scale or mask.
attention::Model raw_dot_product();

/// How large the classes of 001 are made, for 4 tokens in each sequence, and at which seed.
struct ClassSize {
  std::size_t d_model, n_heads, n_sequences;
  std::uint64_t seed;
};
/// The notebook's own size; it sets no seed.
constexpr ClassSize full_size{256, 8, 8, 42};

/// 001: one head with biases, whatever n_heads says; the input is drawn before the layers.
attention::Model attention_class(const ClassSize& size, bool causal);

/// 001: n_heads causal heads with an output projection; the input is drawn after the layers.
attention::Model multi_head_class(const ClassSize& size, attention::MergeRule merge);

/// 002: uniform scores on four sequences of 8 × 65; renormalise is version 1, negative_infinity version 2.
attention::Model averaging(attention::MaskMethod method);

/// 002: the four sequences through projections 65 → 65, as the final code has it.
attention::Model full_attention();

/// 002: the earlier run that its printed weights come from: four sequences of 8 × 32, 32 → 16, not scaled.
attention::Model as_printed();

/// 002: the question in the last row gives five books the relevance of the library analogy.
attention::Model library();

/// 003: two equal sequences of 6 × 3, 3 → 2, seed 123.
attention::Model causal_class();

/// 003: scores that are randn(5, 5) at seed 123, masked and softmaxed.
attention::Model masked_scores();

/// 003: an input of ten ones whose output is what dropout leaves of them at rate 0.5 and seed 123.
attention::Model ten_ones_dropped();

/// 004: the sentence, 3 → 2, seed 123; mask and dropout are what its steps differ in.
attention::Model your_journey_attention(bool causal, attention::MaskMethod method, double dropout_rate);

}  // namespace core::editing::notebooks
