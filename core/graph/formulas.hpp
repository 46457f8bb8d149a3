#pragma once

#include <armadillo>
#include <optional>
#include <vector>

#include "core/graph/departures.hpp"
#include "core/graph/model.hpp"

/// One pure function for each formula of scaled dot-product attention (Vaswani et al. 2017, section 3.2).
/// Queries stand in rows, keys in columns. None of them asks for as many queries as keys.
namespace core::attention {

/// x·W + b; x is n × d_in, the result n × d_out.
arma::mat project(const arma::mat& x, const Linear& linear);

/// Columns of head h out of n_heads bands; x is n × d_out, the result n × d_head.
arma::mat band(const arma::mat& x, std::size_t head, std::size_t n_heads);

/// Columns head, head + n_heads, … of x, n × d_out; the result is n × d_head.
arma::mat every_nth_column(const arma::mat& x, std::size_t head, std::size_t n_heads);

/// x, n × d_out, viewed as [head][token][column] without a transpose: the n × d_head numbers of one head.
arma::mat viewed(const arma::mat& x, std::size_t head, std::size_t n_heads);

/// x / √(mean(x²) + ε) · w of each row; factors is 1 × n_cols. Source: Zhang and Sennrich 2019.
arma::mat divided_by_rms(const arma::mat& rows, const arma::rowvec& factors, double epsilon);

/// (x − mean(x)) / √(variance(x) + ε) · w of each row. Source: Ba, Kiros and Hinton 2016, without its shift.
arma::mat divided_by_deviation(const arma::mat& rows, const arma::rowvec& factors, double epsilon);

/// Q·Kᵀ: n_queries × n_keys.
arma::mat scores(const arma::mat& queries, const arma::mat& keys);

/// The scores where visible is 1, fill where it is 0.
arma::mat masked(const arma::mat& scaled_scores, const arma::mat& visible, double fill);

/// exp(s − max) / Σ exp(s − max) of each row; a row of −inf alone gives NaN.
arma::mat softmax_rows(const arma::mat& scores);

/// exp(s − max) / (Σ exp(s − max) + exp(sink − max)) of each row; a row of −inf alone gives zeros.
arma::mat softmax_rows_and_sink(const arma::mat& scores, double sink);

/// What a softmax block by block takes from each score before exp(), for its own weight and for the sum; ∞
/// where a key is not visited.
struct BlockMaxima {
  arma::rowvec own, summed;
  double last;  ///< the largest score of all that are visited
};
BlockMaxima block_maxima(const arma::rowvec& scores, const Blocks& blocks);

/// The softmax of each row block by block, with what goes wrong there; a row of −inf alone gives NaN. A sink
/// joins the sum at the end.
arma::mat softmax_in_blocks(const arma::mat& scores, const Blocks& blocks, std::optional<double> sink = {});

/// The softmax of each column: what a softmax over the wrong axis gives.
arma::mat softmax_columns(const arma::mat& scores);

/// Each row divided by its sum: n × m and n × 1 give n × m; 0/0 gives NaN.
arma::mat renormalised(const arma::mat& weights, const arma::mat& row_sums);

/// Whether a row of scores holds nothing but hidden keys and scores of −∞, which a bias can give.
bool sees_nothing(const arma::rowvec& visible, const arma::rowvec& scores);

/// The weights with every row that sees nothing set to zero.
arma::mat with_empty_rows_zeroed(const arma::mat& weights, const arma::mat& visible, const arma::mat& scores);

/// The heads' contexts side by side: n_tokens × (n_heads · d_head).
arma::mat concatenated(const std::vector<arma::mat>& contexts);

/// The heads' contexts with column k of head h in column k·n_heads + h: n_tokens × (n_heads · d_head).
arma::mat interleaved(const std::vector<arma::mat>& contexts);

/// The heads' contexts as [head][token][column] numbers read again as [token][d_out]: what a reshape without
/// the transpose gives.
arma::mat reshaped_without_transpose(const std::vector<arma::mat>& contexts);

}  // namespace core::attention
