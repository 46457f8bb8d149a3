#pragma once

#include <cstddef>

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

/// What numbers are rounded to; tf32 has the range of float32 and the digits of float16.
enum class Precision { float64, float32, float16, bfloat16, tf32 };

/// What goes wrong in a softmax that takes the keys block by block, each with the largest score so far.
enum class BlockRule {
  whole,                  ///< nothing: as if all keys were one block
  not_rescaled,           ///< neither the sum nor the contexts are brought to a larger maximum
  sum_not_rescaled,       ///< the sum is not
  contexts_not_rescaled,  ///< the contexts are not
  last_dropped            ///< the last block, or what is left of one, is not visited
};
struct Blocks {
  BlockRule rule = BlockRule::whole;
  std::size_t size = 1;  ///< in keys, at least 1
  friend bool operator==(const Blocks&, const Blocks&) = default;
};

/// Which projected matrices are viewed as [head][token][column] without a transpose.
struct Viewed {
  bool queries = false, keys = false, values = false;
  friend bool operator==(const Viewed&, const Viewed&) = default;
};

/// The edge of the causal rule, moved or turned over.
struct MaskEdge {
  int diagonal = 0;         ///< a query sees the keys up to its own position plus this
  bool transposed = false;  ///< queries and keys are in each other's place
  friend bool operator==(const MaskEdge&, const MaskEdge&) = default;
};

/// What goes wrong in what models of today add to the paper.
struct Misplaced {
  bool groups_tiled = false;          ///< head h asks group h mod n_kv_heads
  bool norm_after_rotation = false;   ///< queries and keys are normalised after they were turned
  bool cap_before_scale = false;      ///< scores are capped before they are scaled
  bool bias_before_scale = false;     ///< biases are added before the scores are scaled
  bool queries_turned_alone = false;  ///< keys are not turned
  bool values_turned = false;         ///< values are turned too
  bool turned_backwards = false;      ///< by the negative angle
  int query_offset = 0;  ///< positions of queries are so far off from those of keys when they turn
  friend bool operator==(const Misplaced&, const Misplaced&) = default;
};

/// Ways in which an implementation may depart from the paper; by default it departs in none.
struct Departures {
  SoftmaxOver softmax_over = SoftmaxOver::keys;
  bool scores_swapped = false;  ///< K·Qᵀ in place of Q·Kᵀ
  MaskEdge mask_edge;
  double large_negative = -1e9;  ///< what MaskMethod::large_negative writes; finite
  DropoutPlace dropout_place = DropoutPlace::weights;
  HeadColumns split = HeadColumns::bands;    ///< how columns are given to the heads
  HeadColumns merge = HeadColumns::bands;    ///< how MergeRule::concatenate lays the contexts side by side
  Precision precision = Precision::float64;  ///< what every computed stage is rounded to
  Precision product_inputs = Precision::float64;  ///< what both factors of a matrix product are rounded to
  bool sums_rounded = false;  ///< products and partial sums of matrix products are rounded like stages
  Precision softmax_precision = Precision::float64;  ///< what the softmax takes and gives is rounded to
  Viewed viewed;
  Blocks blocks;
  bool scores_prescaled = false;  ///< queries are scaled before they meet the keys, and scores again
  Misplaced misplaced;
  friend bool operator==(const Departures&, const Departures&) = default;
};

}  // namespace core::attention
