#pragma once

#include <cstddef>
#include <vector>

#include "core/base/thread_pool.hpp"
#include "core/model/architecture.hpp"
#include "core/model/weights.hpp"

/// The parts of a layer: pure functions of float32, a token per row.
namespace core::transformer {

/// Returns x·W + b, or its activation if one is given.
RowBuffer project(const RowsView& x, const Affine& numbers, ThreadPool& pool,
                  std::optional<Activation> activation = {});

/// Computes LayerNorm or RMSNorm of a row, with its factors from column first_factor on: biased variance,
/// epsilon under the root. Source: Ba, Kiros and Hinton 2016; Zhang and Sennrich 2019.
void norm_row(const float* x, std::size_t width, const NormWeights& numbers, const ModelNorm& norm, float* y,
              std::size_t first_factor = 0);

/// Computes the same for every row.
RowBuffer apply_norm(const RowsView& x, const NormWeights& numbers, const ModelNorm& norm, ThreadPool& pool);

/// Returns a + b, and sets is_finite to whether all sums are finite.
RowBuffer sum_of(const RowsView& a, const RowsView& b, ThreadPool& pool, bool& is_finite);

/// RoPE of tokens at positions from `first` on: sines and cosines, shared by all layers.
class RotaryTable {
 public:
  RotaryTable(const std::optional<positions::Rotary>& rotary, std::size_t d_head, std::size_t first,
              std::size_t n_tokens);
  /// Rotates one head of a token in place.
  void apply(float* head, std::size_t token) const;

 private:
  std::vector<positions::PairColumns> columns_;
  std::vector<float> cosines_, sines_;  ///< [token][pair]
};

/// The rotations of all layers, of at most two kinds.
class LayerRotaryTables {
 public:
  LayerRotaryTables(const Architecture& architecture, std::size_t first, std::size_t n_tokens);
  const RotaryTable& at(std::size_t layer) const;

 private:
  const Architecture* architecture_;
  RotaryTable none_, global_, windowed_;
};

/// Computes down(activation(up(x))), or down(activation(gate(x)) ∘ up(x)). Source: Shazeer 2020.
RowBuffer mlp(const RowsView& x, const MlpWeights& weights, const Mlp& rules, ThreadPool& pool);

/// Returns for each row the sum of the MLPs of the experts that its router prefers, times the router's
/// weights, and of the expert of all tokens, if any. Source: Jiang et al. 2024, "Mixtral of experts".
RowBuffer mixture_of_experts(const RowsView& x, const LayerWeights& weights, const Architecture& architecture,
                             ThreadPool& pool);

/// Queries, keys or values of all heads.
using HeadRows = std::vector<SharedRows>;

/// The attention mask of a layer, and the rules for its scores.
struct ScoreRules {
  bool causal = true;
  /// Largest number of keys per query, its own included; 0 for no limit. If attention is not causal, half of
  /// them are on each side.
  std::size_t window = 0;
  float scale = 1;
  float softcap = 0;          ///< of scaled scores; 0 for none
  std::vector<float> slopes;  ///< of ALiBi, [head], or empty
};

ScoreRules score_rules_of(const Architecture& architecture, std::size_t layer);

/// Keys begin … end − 1 of n_keys, those that the query at a position attends to.
struct VisibleKeys {
  std::size_t begin = 0, end = 0;
};
VisibleKeys visible_keys(const ScoreRules& rules, std::size_t position, std::size_t n_keys);

/// Computes the attention weights of a head, n_queries × n_keys.
///
/// Source: Vaswani et al. 2017, 3.2.1, without the product with the values.
RowBuffer compute_attention_weights(const RowsView& queries, const RowsView& keys, const ScoreRules& rules,
                                    std::size_t head);

/// Returns the context vectors of some queries, all heads concatenated: count × n_heads · d_head.
RowBuffer compute_contexts(const HeadRows& queries, const HeadRows& keys, const HeadRows& values,
                           std::size_t first, std::size_t count, const ScoreRules& rules, ThreadPool& pool);

}  // namespace core::transformer
