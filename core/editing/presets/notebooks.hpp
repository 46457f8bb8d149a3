#pragma once

#include <cstdint>

#include "core/attention/model.hpp"

/// The models of the five teaching notebooks, 000 to 004, drawn as their code draws them.
namespace core::editing::notebooks {

attention::Model causal_step_by_step();  // 000

attention::Model raw_dot_product();  // 001
/// How large the classes of 001 are made, and at which seed.
struct ClassSize {
  std::size_t d_model, n_heads, n_sequences;
  std::uint64_t seed;
};
constexpr ClassSize full_size{256, 8, 8, 42};  ///< the notebook's own size; it has no seed
attention::Model attention_class(const ClassSize& size, bool causal);
attention::Model multi_head_class(const ClassSize& size, attention::MergeRule merge);

attention::Model averaging(attention::MaskMethod method);  // 002, versions 1 and 2
attention::Model full_attention();
attention::Model as_printed();
attention::Model library();

attention::Model causal_class();  // 003
attention::Model masked_scores();
attention::Model ten_ones_dropped();

/// 004 at its seed; the mask and the dropout are what its steps differ in.
attention::Model your_journey_attention(bool causal, attention::MaskMethod method, double dropout_rate);

}  // namespace core::editing::notebooks
