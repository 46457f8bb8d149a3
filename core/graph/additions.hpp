#pragma once

#include <armadillo>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <optional>
#include <vector>

#include "core/base/positions.hpp"
#include "core/base/shared_matrix.hpp"

namespace core::attention {

/// Divisor of the rows of queries and keys: their root mean square, or their standard deviation after the
/// mean is subtracted.
enum class NormRule { rms, layer };

/// Columns that QK norm runs over: those of one head, with factors shared by all heads or separate ones; or
/// all columns, before heads are split.
enum class NormScope { head, own_head, all_heads };

/// QK norm: queries and keys are normalized before their dot products: x / √(mean(x²) + ε) · w.
struct QueryKeyNorm {
  NormRule rule = NormRule::rms;
  /// Factors w: one row of d_head, or the rows of all heads or KV heads concatenated if each has its own.
  SharedMatrix query, key;
  double epsilon = 1e-6;  ///< at least 0
  NormScope over = NormScope::head;
  /// Returns the number of factors of queries or keys with that many heads.
  std::size_t n_factors(std::size_t n_heads, std::size_t d_head) const {
    return over == NormScope::head ? d_head : n_heads * d_head;
  }
  friend bool operator==(const QueryKeyNorm&, const QueryKeyNorm&) = default;
};

/// Where positions enter: in RoPE, or in one of two biases of the scores.
struct Positions {
  std::optional<positions::Rotary> rotary;
  std::optional<positions::Alibi> alibi;
  std::optional<positions::Relative> relative;
  /// Returns whether positions add a bias to the scores.
  bool has_bias() const { return alibi || relative; }
  friend bool operator==(const Positions&, const Positions&) = default;
};

/// Returns c·tanh(s/c) of a score or of all numbers of a matrix: logit soft-capping.
template <std::floating_point Number>
Number softcapped(Number score, Number cap) {
  return cap * std::tanh(score / cap);
}
template <class Number>
arma::Mat<Number> softcapped(const arma::Mat<Number>& scores, Number cap) {
  return cap * arma::tanh(scores / cap);
}

/// Extensions of the original paper in current models; none by default.
struct Additions {
  std::optional<QueryKeyNorm> normalize;
  Positions positions;
  std::optional<double> softcap;  ///< c above 0, for softcapped() of the scaled scores
  /// Attention bias, none, one for all heads, or one for each: n_tokens × n_keys, finite or −inf.
  std::vector<SharedMatrix> score_bias;
  /// Attention sink, 1 × n_heads: exp(sink) joins the sum of each softmax row; weights sum to less than 1.
  std::optional<SharedMatrix> sink;
  /// Returns whether anything is added to scaled scores.
  bool has_bias() const { return positions.has_bias() || !score_bias.empty(); }
  friend bool operator==(const Additions&, const Additions&) = default;
};

}  // namespace core::attention
