#pragma once

#include <vector>

#include "core/graph/stage_matrix.hpp"

namespace core::attention {

/// Queries and keys on their way to the scores; empty where the model has no such step. Keys are those of the
/// head's group.
struct Prepared {
  StageMatrix normed_queries, normed_keys, rotated_queries, rotated_keys;  ///< a row each × d_head
};

/// What is done to scores beside scaling them, n_tokens × n_keys; empty where the model has no such step.
struct Adjusted {
  StageMatrix capped_scores, position_bias, biased_scores;
};

/// What one head computes; every stage under its own name, none overwritten, and empty when it is not known.
struct HeadTrace {
  /// A row for each token that asks, or is asked, × d_head; keys and values are those of the head's group.
  StageMatrix queries, keys, values;
  Prepared prepared;
  StageMatrix scores;  ///< n_tokens × n_keys, like all up to the dropped weights
  StageMatrix scaled_scores;
  Adjusted adjusted;
  StageMatrix masked_scores;     ///< as the stage before when the mask comes after the softmax
  StageMatrix unmasked_weights;  ///< only when the mask comes after the softmax, else empty
  StageMatrix zeroed_weights;    ///< only when the rows are renormalised, else empty
  StageMatrix row_sums;          ///< n_tokens × 1, what zeroed_weights is divided by, else empty
  StageMatrix weights;
  StageMatrix
      dropout_mask;  ///< 0 for dropped, 1/(1 − rate) for kept; 1 everywhere when dropout is not active
  StageMatrix dropped_weights;
  StageMatrix contexts;  ///< n_tokens × d_head
};

/// Every stage of attention for one sequence.
struct Trace {
  std::size_t sequence = 0;    ///< which one of the batch
  StageMatrix embeddings;      ///< n_tokens × d_model
  StageMatrix key_embeddings;  ///< n_keys × d_source, when keys have their own; else empty
  StageMatrix mask;  ///< n_tokens × n_keys: 1 visible, 0 hidden; for all heads; all 1 when it is not known
  std::vector<HeadTrace> heads;  ///< n_heads
  StageMatrix concatenated;      ///< n_tokens × d_out
  StageMatrix output;            ///< n_tokens × d_output
};

}  // namespace core::attention
