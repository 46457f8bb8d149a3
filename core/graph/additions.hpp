#pragma once

#include <optional>
#include <vector>

#include "core/base/positions.hpp"
#include "core/base/shared_matrix.hpp"

namespace core::attention {

/// By what the rows of queries and keys are divided: the root of their mean square, or, after their mean is
/// taken off, their standard deviation.
enum class NormRule { rms, layer };

/// Every query and key of a head is normalised before it meets the others: x / √(mean(x²) + ε) · w.
struct HeadNorm {
  NormRule rule = NormRule::rms;
  SharedMatrix query, key;  ///< 1 × d_head each: the factors w of the columns, the same in every head
  double epsilon = 1e-6;    ///< at least 0
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
