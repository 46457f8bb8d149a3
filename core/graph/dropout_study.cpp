#include "core/graph/dropout_study.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/graph/dropout.hpp"

namespace core::attention {
namespace {

double largest_distance(const arma::mat& sum, double count, const arma::mat& weights) {
  double largest = 0;
  for (std::size_t k = 0; k < sum.n_elem; ++k) {
    const double distance = std::abs(sum[k] / count - weights[k]);
    if (std::isfinite(distance)) largest = std::max(largest, distance);
  }
  return largest;
}

}  // namespace

DropoutStudy::DropoutStudy(const Model& model, std::size_t sequence, std::size_t head, arma::mat weights)
    : dropout_(model.dropout), weights_(std::move(weights)), generator_(model.dropout.seed) {
  const std::size_t one = weights_.n_elem;
  draws_before_ = (sequence * model.n_heads + head) * one;
  draws_after_ = (model.sequences.size() * model.n_heads) * one - draws_before_ - one;
  sum_.zeros(weights_.n_rows, weights_.n_cols);
}

arma::mat DropoutStudy::next_mask() {
  if (!dropout_.active()) return arma::ones(arma::size(weights_));
  const random::Bits drawn = kept(generator_, dropout_, draws_before_ + weights_.n_elem + draws_after_);
  return mask_of(drawn, draws_before_, weights_.n_rows, weights_.n_cols, dropout_);
}

void DropoutStudy::advance(std::size_t count) {
  for (std::size_t k = 0; k < count; ++k) {
    const arma::mat mask = next_mask();
    const arma::mat dropped = weights_ % mask;
    sum_ += dropped;
    row_sums_.push_back(arma::sum(dropped, 1));
    distances_.push_back(largest_distance(sum_, static_cast<double>(row_sums_.size()), weights_));
  }
}

arma::mat DropoutStudy::mean() const {
  return distances_.empty() ? arma::mat() : arma::mat(sum_ / static_cast<double>(distances_.size()));
}

arma::rowvec dropped_ones(const Dropout& dropout, std::size_t n) {
  if (!dropout.active()) return arma::ones(1, n);
  random::Generator generator(dropout.seed);
  return mask_of(kept(generator, dropout, n), 0, 1, n, dropout);
}

}  // namespace core::attention
