#pragma once

#include <armadillo>
#include <cstddef>
#include <vector>

#include "core/base/random.hpp"
#include "core/graph/model.hpp"

namespace core::attention {

/// Returns the dropout masks of one sequence, one for each head: n_tokens × n_keys of 0 and dropout_scale().
///
/// They are given in the model or sampled as nn.Dropout does for weights of shape
/// [sequence][head][query][key] right after manual_seed(seed); ones if dropout is not active.
std::vector<arma::mat> sampled_dropout_masks(const Model& model, std::size_t sequence);

/// Returns a mask of n_rows × n_columns from the bits starting at `first`, row-major: 0 or dropout_scale().
arma::mat mask_from_bits(const random::Bits& kept, std::size_t first, std::size_t n_rows,
                         std::size_t n_columns, const Dropout& dropout);

/// Returns which of the next n numbers dropout keeps, in its own stream; ignores a given mask.
random::Bits kept(random::Generator& generator, const Dropout& dropout, std::size_t n);

/// Average effect of dropout on one head's weights over many masks, sampled after one seed as by repeated
/// calls of a module.
///
/// Every call samples for the whole batch and all heads; the study keeps one head of one sequence. A mask
/// given in the model is ignored. Advance by as many masks as a frame has time for.
class DropoutStudy {
 public:
  /// weights: n_tokens × n_keys, of that head of that sequence, before dropout.
  DropoutStudy(const Model& model, std::size_t sequence, std::size_t head, arma::mat weights);

  /// Samples `count` more masks.
  void advance(std::size_t count);

  std::size_t count() const { return distances_.size(); }
  const arma::mat& weights() const { return weights_; }
  /// Returns the mean of the dropped weights over all masks so far; empty before the first.
  arma::mat mean() const;
  /// Returns [N − 1]: the largest |mean − weights| of any cell after N masks; non-finite cells are ignored.
  const std::vector<double>& distances() const { return distances_; }
  /// Returns [mask]: the row sums of the dropped weights, n_tokens of them.
  const std::vector<arma::vec>& row_sums() const { return row_sums_; }

 private:
  arma::mat next_mask();

  Dropout dropout_;
  std::size_t n_before_, n_after_;  // numbers of the same call for other heads and sequences
  arma::mat weights_, sum_;
  random::Generator generator_;
  std::vector<double> distances_;
  std::vector<arma::vec> row_sums_;
};

/// Returns nn.Dropout of n ones right after manual_seed(seed): 0 or dropout_scale() each; ones if dropout is
/// not active.
arma::rowvec dropped_ones(const Dropout& dropout, std::size_t n);

}  // namespace core::attention
