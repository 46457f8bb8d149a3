#include "core/engine/adjusting.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace core::attention::fast {
namespace {

/// What positions add to the scores of a head, for each distance from 1 − n_keys on.
std::vector<double> biases_by_distance(const Model& m, std::size_t head, std::size_t count) {
  const Positions& positions = m.additions.positions;
  const double slope = positions.alibi ? slope_of(*positions.alibi, head, m.n_heads) : 0;
  std::vector<double> biases(count);
  for (std::size_t k = 0; k < count; ++k) {
    const auto distance = static_cast<std::int64_t>(k) - static_cast<std::int64_t>(m.n_keys() - 1);
    biases[k] = positions.relative
                    ? positions.relative->table.at(head, bucket_of(distance, *positions.relative))
                    : -slope * static_cast<double>(std::abs(distance));
  }
  return biases;
}

std::vector<double> row_after_row(const arma::mat& m) {
  const arma::mat rows = m.t();
  return {rows.begin(), rows.end()};
}

}  // namespace

Adjusting::Adjusting(const Model& m)
    : n_queries_(m.n_tokens()),
      n_keys_(m.n_keys()),
      n_heads_(m.n_heads),
      positions_(m.additions.positions),
      score_bias_(m.additions.score_bias),
      cap_(m.additions.score_cap) {
  positions_.rotary.reset();  // which is none of the scores
  if (positions_.has_bias())
    for (std::size_t h = 0; h < n_heads_; ++h)
      by_distance_.push_back(biases_by_distance(m, h, n_keys_ + std::max(n_queries_, n_keys_) - 1));
  for (const SharedMatrix& bias : score_bias_) bias_.push_back(row_after_row(bias));
}

bool Adjusting::fits(const Model& m) const {
  const Additions& a = m.additions;
  return n_queries_ == m.n_tokens() && n_keys_ == m.n_keys() && n_heads_ == m.n_heads &&
         cap_ == a.score_cap && positions_.alibi == a.positions.alibi &&
         positions_.relative == a.positions.relative && score_bias_ == a.score_bias;
}

const double* Adjusting::distances(std::size_t head, std::size_t row) const {
  // The last query stands at the last key.
  return by_distance_.empty() ? nullptr : by_distance_[head].data() + (n_queries_ - 1 - row);
}

const double* Adjusting::given(std::size_t head, std::size_t row) const {
  return bias_.empty() ? nullptr : bias_[bias_.size() == 1 ? 0 : head].data() + row * n_keys_;
}

double Adjusting::capped(double scaled) const {
  return *cap_ * std::tanh(scaled / *cap_);
}

double Adjusting::position_bias(std::size_t head, std::size_t row, std::size_t key) const {
  const double* numbers = distances(head, row);
  return numbers ? numbers[key] : 0;
}

double Adjusting::bias(std::size_t head, std::size_t row, std::size_t key) const {
  const double* numbers = given(head, row);
  return position_bias(head, row, key) + (numbers ? numbers[key] : 0);
}

void Adjusting::adjust(const Kernels& kernels, std::size_t head, std::size_t row, double* scores,
                       std::size_t first, std::size_t end) const {
  if (cap_) {
    constexpr double far = 40;  // tanh is 1 to the last digit long before
    const double c = *cap_;
    for (std::size_t j = first; j < end; ++j) scores[j] = std::clamp(2 * scores[j] / c, -far, far);
    kernels.exponentials(scores + first, end - first);
    for (std::size_t j = first; j < end; ++j) scores[j] = c * (1 - 2 / (scores[j] + 1));  // c·tanh
  }
  if (const double* numbers = distances(head, row))
    for (std::size_t j = first; j < end; ++j) scores[j] += numbers[j];
  if (const double* numbers = given(head, row))
    for (std::size_t j = first; j < end; ++j) scores[j] += numbers[j];
}

}  // namespace core::attention::fast
