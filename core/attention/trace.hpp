#pragma once

#include <armadillo>
#include <vector>

namespace core::attention {

/// What one head computes; every stage under its own name, none overwritten.
struct HeadTrace {
  arma::mat queries, keys, values;  ///< n_tokens × d_head
  arma::mat scores;                 ///< n_tokens × n_tokens, like all up to the dropped weights
  arma::mat scaled_scores;
  arma::mat masked_scores;     ///< as scaled_scores when the mask comes after the softmax
  arma::mat unmasked_weights;  ///< only when the mask comes after the softmax, else empty
  arma::mat zeroed_weights;    ///< only when the rows are renormalised, else empty
  arma::mat row_sums;          ///< n_tokens × 1, what zeroed_weights is divided by, else empty
  arma::mat weights;
  arma::mat dropout_mask;  ///< 0 for dropped, 1/(1 − rate) for kept; 1 everywhere when dropout is not active
  arma::mat dropped_weights;
  arma::mat contexts;  ///< n_tokens × d_head
};

/// Every stage of attention for one sequence.
struct Trace {
  std::size_t sequence = 0;      ///< which one of the batch
  arma::mat embeddings;          ///< n_tokens × d_model
  arma::mat mask;                ///< n_tokens × n_tokens: 1 visible, 0 hidden; for all heads
  std::vector<HeadTrace> heads;  ///< n_heads
  arma::mat concatenated;        ///< n_tokens × d_out
  arma::mat output;              ///< n_tokens × d_out
};

}  // namespace core::attention
