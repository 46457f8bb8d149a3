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

/// The scores where visible is 1, fill where it is 0.
arma::mat masked(const arma::mat& scaled_scores, const arma::mat& visible, double fill);

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

/// Whether a row of scores holds nothing but hidden keys and scores of −∞, which a bias can give.
bool sees_nothing(const arma::rowvec& visible, const arma::rowvec& scores);

/// The heads' contexts as [head][token][column] numbers read again as [token][d_out]: what a reshape without
/// the transpose gives.
arma::mat reshaped_without_transpose(const std::vector<arma::mat>& contexts);

}  // namespace core::attention
