#pragma once

#include <armadillo>
#include <cstddef>
#include <vector>

#include "core/base/random.hpp"
#include "core/graph/model.hpp"

namespace core::attention {

/// What dropout does to one head's weights on average: mask after mask, as a module that is called again and
/// again draws them after one seed.
///
/// Every call draws for the whole batch and all heads; the study keeps one head of one sequence. A mask that
/// is given in the model is not used: the masks are drawn. Advance by as many masks as a frame has time for.
class DropoutStudy {
 public:
  /// weights: n_tokens × n_tokens, of that head of that sequence, before dropout.
  DropoutStudy(const Model& model, std::size_t sequence, std::size_t head, arma::mat weights);

  /// Draws so many masks more.
  void advance(std::size_t count);

  std::size_t count() const { return distances_.size(); }
  const arma::mat& weights() const { return weights_; }
  /// The mean of the dropped weights over all masks so far; empty before one was drawn.
  arma::mat mean() const;
  /// [N − 1]: the largest |mean − weights| of any cell after N masks; cells that are not finite are left out.
  const std::vector<double>& distances() const { return distances_; }
  /// [mask]: the sums of the rows of the dropped weights, n_tokens of them.
  const std::vector<arma::vec>& row_sums() const { return row_sums_; }

 private:
  arma::mat next_mask();

  Dropout dropout_;
  std::size_t draws_before_, draws_after_;  // of the same call, for other heads and sequences
  arma::mat weights_, sum_;
  random::Generator generator_;
  std::vector<double> distances_;
  std::vector<arma::vec> row_sums_;
};

/// nn.Dropout on a vector of n ones right after manual_seed(seed): 0 or 1/(1 − rate) each, ones when dropout
/// is not active.
arma::rowvec dropped_ones(const Dropout& dropout, std::size_t n);

}  // namespace core::attention
