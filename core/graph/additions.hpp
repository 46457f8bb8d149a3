#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/base/positions.hpp"
#include "core/base/shared_matrix.hpp"

namespace core::attention {

/// By what the rows of queries and keys are divided: the root of their mean square, or, after their mean is
/// taken off, their standard deviation.
enum class NormRule { rms, layer };

/// What a norm of queries and keys is taken over: the columns of a head, with the same factors in every head
/// or with factors of its own; or all columns at once, before heads are split.
enum class NormOver { head, own_head, all_heads };

/// QK norm: queries and keys are normalized before their dot products: x / √(mean(x²) + ε) · w.
struct HeadNorm {
  NormRule rule = NormRule::rms;
  /// The factors w, a row of d_head each; of all heads, or KV heads, side by side where each has its own.
  SharedMatrix query, key;
  double epsilon = 1e-6;  ///< at least 0
  NormOver over = NormOver::head;
  /// Factors of queries or keys of so many heads.
  std::size_t n_factors(std::size_t n_heads, std::size_t d_head) const {
    return over == NormOver::head ? d_head : n_heads * d_head;
  }
  friend bool operator==(const HeadNorm&, const HeadNorm&) = default;
};

/// How positions enter: turning queries and keys, or as one of two biases of the scores.
struct Positions {
  std::optional<positions::Rotary> rotary;
  std::optional<positions::Alibi> alibi;
  std::optional<positions::Relative> relative;
  /// Whether scores get a bias that positions decide.
  bool has_bias() const { return alibi || relative; }
  friend bool operator==(const Positions&, const Positions&) = default;
};

/// What models of today add to the paper; by default nothing.
struct Additions {
  std::optional<HeadNorm> normalise;
  Positions positions;
  std::optional<double> score_cap;  ///< c above 0: scaled scores s become c·tanh(s/c)
  /// None, one for all heads, or one for each: n_tokens × n_keys, finite or −inf, added to the scores.
  std::vector<SharedMatrix> score_bias;
  /// 1 × n_heads: exp(sink) joins the sum of each row of the softmax, so that its weights sum to less than 1.
  std::optional<SharedMatrix> sink;
  /// Whether anything is added to scaled scores.
  bool has_bias() const { return positions.has_bias() || !score_bias.empty(); }
  friend bool operator==(const Additions&, const Additions&) = default;
};

}  // namespace core::attention
