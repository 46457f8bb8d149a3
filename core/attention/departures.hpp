#pragma once

namespace core::attention {

/// Over what the softmax runs: the keys of each query, or the queries of each key.
enum class SoftmaxOver { keys, queries };

/// What dropout is laid on. A dropped weight is a missing key; a dropped score is a score of 0.
enum class DropoutPlace {
  weights,
  scaled_scores,  ///< before the mask
  masked_scores   ///< between mask and softmax, where −∞ · 0 is NaN
};

/// Which of the d_out columns are one head's: a band of neighbours, or every n_heads-th.
enum class HeadColumns { bands, interleaved };

/// What every computed stage is rounded to.
enum class Precision { float64, float32, float16, bfloat16 };

/// Ways in which an implementation may depart from the paper; by default it departs in none.
struct Departures {
  SoftmaxOver softmax_over = SoftmaxOver::keys;
  bool scores_swapped = false;   ///< K·Qᵀ in place of Q·Kᵀ
  int mask_diagonal = 0;         ///< the causal rule shows a query the keys up to its own position plus this
  bool mask_transposed = false;  ///< the causal rule with queries and keys in each other's place
  double large_negative = -1e9;  ///< what MaskMethod::large_negative writes; finite
  DropoutPlace dropout_place = DropoutPlace::weights;
  HeadColumns split = HeadColumns::bands;  ///< how columns are given to the heads
  HeadColumns merge = HeadColumns::bands;  ///< how MergeRule::concatenate lays the contexts side by side
  Precision precision = Precision::float64;
  friend bool operator==(const Departures&, const Departures&) = default;
};

}  // namespace core::attention
