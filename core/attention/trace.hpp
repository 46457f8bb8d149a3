#pragma once

#include <vector>

#include "core/attention/stage_matrix.hpp"

namespace core::attention {

/// What one head computes; every stage under its own name, none overwritten, and empty when it is not known.
struct HeadTrace {
  StageMatrix queries, keys, values;  ///< a row for each token that asks, or is asked, × d_head
  StageMatrix scores;                 ///< n_tokens × n_keys, like all up to the dropped weights
  StageMatrix scaled_scores;
  StageMatrix masked_scores;     ///< as scaled_scores when the mask comes after the softmax
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
  std::size_t sequence = 0;  ///< which one of the batch
  StageMatrix embeddings;    ///< n_tokens × d_model
  StageMatrix mask;  ///< n_tokens × n_keys: 1 visible, 0 hidden; for all heads; all 1 when it is not known
  std::vector<HeadTrace> heads;  ///< n_heads
  StageMatrix concatenated;      ///< n_tokens × d_out
  StageMatrix output;            ///< n_tokens × d_output
};

}  // namespace core::attention
