#include "core/graph/dropout.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace core::attention {

namespace {

std::vector<arma::mat> sampled(const Model& model, std::size_t sequence) {
  const std::size_t n_queries = model.n_tokens(), n_keys = model.n_keys(),
                    per_sequence = model.n_heads * n_queries * n_keys;
  random::Generator generator(model.dropout.seed);
  const std::size_t n_samples = (sequence + 1) * per_sequence;  // earlier sequences take their numbers first
  const random::Bits kept_bits = kept(generator, model.dropout, n_samples);
  std::vector<arma::mat> masks;
  for (std::size_t h = 0; h < model.n_heads; ++h)
    masks.push_back(mask_from_bits(kept_bits, sequence * per_sequence + h * n_queries * n_keys, n_queries,
                                   n_keys, model.dropout));
  return masks;
}

double largest_distance(const arma::mat& sum, double count, const arma::mat& weights) {
  double largest = 0;
  for (std::size_t k = 0; k < sum.n_elem; ++k) {
    const double distance = std::abs(sum[k] / count - weights[k]);
    if (std::isfinite(distance)) largest = std::max(largest, distance);
  }
  return largest;
}

}  // namespace

arma::mat mask_from_bits(const random::Bits& kept, std::size_t first, std::size_t n_rows,
                         std::size_t n_columns, const Dropout& dropout) {
  const double factor = dropout_scale(dropout);
  arma::mat mask(n_rows, n_columns);
  for (std::size_t i = 0; i < n_rows; ++i)
    for (std::size_t j = 0; j < n_columns; ++j) mask(i, j) = kept[first++] ? factor : 0;
  return mask;
}

random::Bits kept(random::Generator& generator, const Dropout& dropout, std::size_t n) {
  return dropout.stream == DropoutStream::mkl ? generator.dropout_kept_mkl(n, dropout.rate)
                                              : generator.dropout_kept(n, dropout.rate);
}

std::vector<arma::mat> sampled_dropout_masks(const Model& model, std::size_t sequence) {
  if (!model.dropout.active())
    return std::vector<arma::mat>(model.n_heads, arma::ones(model.n_tokens(), model.n_keys()));
  if (model.dropout.given.empty()) return sampled(model, sequence);
  std::vector<arma::mat> masks;
  for (std::size_t h = 0; h < model.n_heads; ++h)
    masks.push_back(*model.dropout.given[sequence * model.n_heads + h] * dropout_scale(model.dropout));
  return masks;
}

DropoutStudy::DropoutStudy(const Model& model, std::size_t sequence, std::size_t head, arma::mat weights)
    : dropout_(model.dropout), weights_(std::move(weights)), generator_(model.dropout.seed) {
  const std::size_t one = weights_.n_elem;
  n_before_ = (sequence * model.n_heads + head) * one;
  n_after_ = (model.sequences.size() * model.n_heads) * one - n_before_ - one;
  sum_.zeros(weights_.n_rows, weights_.n_cols);
}

arma::mat DropoutStudy::next_mask() {
  if (!dropout_.active()) return arma::ones(arma::size(weights_));
  const random::Bits sampled = kept(generator_, dropout_, n_before_ + weights_.n_elem + n_after_);
  return mask_from_bits(sampled, n_before_, weights_.n_rows, weights_.n_cols, dropout_);
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
  return mask_from_bits(kept(generator, dropout, n), 0, 1, n, dropout);
}

}  // namespace core::attention
