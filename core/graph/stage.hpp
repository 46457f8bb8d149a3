#pragma once

#include <cstddef>

namespace core::attention {

/// Every stage, in the order of the computation.
enum class Stage {
  embeddings,
  key_embeddings,
  queries,
  keys,
  values,
  normed_queries,
  normed_keys,
  rotated_queries,
  rotated_keys,
  scores,
  scaled_scores,
  capped_scores,
  position_bias,
  biased_scores,
  mask,
  masked_scores,
  unmasked_weights,
  zeroed_weights,
  row_sums,
  weights,
  dropout_mask,
  dropped_weights,
  contexts,
  concatenated,
  output
};

/// Whether a stage is what a projection gives, split into heads: queries, keys and values.
constexpr bool is_projected(Stage stage) {
  return stage == Stage::queries || stage == Stage::keys || stage == Stage::values;
}

constexpr std::size_t n_stages = static_cast<std::size_t>(Stage::output) + 1;

}  // namespace core::attention
