#pragma once

#include <armadillo>
#include <cstddef>

#include "core/base/thread_pool.hpp"
#include "core/model/architecture.hpp"
#include "core/model/weights.hpp"

/// The parts of a layer: pure functions of float32, a token a row.
namespace core::transformer {

/// x·W, its columns shared among threads.
arma::fmat product(const arma::fmat& x, const arma::fmat& weight, ThreadPool& pool);

/// x·W + b.
arma::fmat projected(const arma::fmat& x, const Affine& numbers, ThreadPool& pool);

/// LayerNorm or RMSNorm of each row: biased variance, epsilon under the root. Source: Ba, Kiros and Hinton
/// 2016; Zhang and Sennrich 2019.
arma::fmat normed(const arma::fmat& x, const Affine& numbers, NormKind kind, double epsilon);

/// QK norm: RMSNorm of every head's columns on their own, in place.
void norm_heads(arma::fmat& heads, std::size_t d_head, const Affine& numbers, const Norm& norm);

/// RoPE in place: n_tokens × heads · d_head, of tokens at positions from first on.
void rotate(arma::fmat& heads, std::size_t d_head, const positions::Rotary& rotary, std::size_t first);

/// Applies an activation to so many numbers in place.
void activate(float* numbers, std::size_t count, Activation activation);

/// down(activation(up(x))), or down(activation(gate(x)) ∘ up(x)). Source: Shazeer 2020.
arma::fmat mlp(const arma::fmat& x, const LayerWeights& weights, const Mlp& rules, ThreadPool& pool);

/// Keys and values of a layer, of which the first n rows count.
struct KeysAndValues {
  arma::fmat keys, values;  ///< at least n × kv_heads · d_head
  std::size_t n = 0;

  void append(const arma::fmat& more_keys, const arma::fmat& more_values);
};

/// The attention mask of a layer, and the scale of its scores.
struct Visibility {
  bool causal = true;
  std::size_t window = 0;  ///< keys that a query attends to at most, its own among them; 0 for no limit
  float scale = 1;
};

Visibility visibility_of(const Architecture& architecture, std::size_t layer);

/// The keys begin … end − 1 that the query at a position attends to, of n_keys.
struct VisibleKeys {
  std::size_t begin = 0, end = 0;
};
VisibleKeys visible_keys(const Visibility& visibility, std::size_t position, std::size_t n_keys);

/// The attention weights of a head: n_keys × n_queries, a query a column. The queries belong to the last
/// keys.
///
/// Source: Vaswani et al. 2017, 3.2.1, without the product with the values.
arma::fmat weights_of_head(const arma::fmat& queries, const KeysAndValues& keys, const Sizes& sizes,
                           const Visibility& visibility, std::size_t head);

/// The context vectors of all heads, concatenated: n_queries × n_heads · d_head.
arma::fmat attended(const arma::fmat& queries, const KeysAndValues& keys, const Sizes& sizes,
                    const Visibility& visibility, ThreadPool& pool);

}  // namespace core::transformer
