#include "core/engine/preparing.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/positions.hpp"
#include "core/graph/order.hpp"

namespace core::attention::fast {

Preparing::Preparing(const Model& model)
    : n_queries_(model.n_tokens()),
      n_keys_(model.n_keys()),
      d_head_(model.d_head()),
      norm_(model.additions.normalise),
      rotary_(model.additions.positions.rotary) {
  if (!rotary_) return;
  const std::vector<double> frequencies = positions::frequencies(*rotary_, d_head_);
  for (std::size_t p = 0; p < frequencies.size(); ++p) pairs_.push_back(columns_of(*rotary_, p, d_head_));
  // The last query stands at the last key, so that the longer of both lists begins earliest.
  const std::size_t count = std::max(n_queries_, n_keys_);
  const std::int64_t last = position_of_key(model, n_keys_ - 1);
  for (std::size_t k = 0; k < count; ++k) {
    const auto position = last - static_cast<std::int64_t>(count - 1 - k);
    const positions::Rotation turn = rotation_at(*rotary_, frequencies, position);
    cosines_.insert(cosines_.end(), turn.cosines.begin(), turn.cosines.end());
    sines_.insert(sines_.end(), turn.sines.begin(), turn.sines.end());
  }
}

bool Preparing::fits(const Model& model) const {
  return n_queries_ == model.n_tokens() && n_keys_ == model.n_keys() && d_head_ == model.d_head() &&
         norm_ == model.additions.normalise && rotary_ == model.additions.positions.rotary;
}

void Preparing::norm(Projected what, double* row) const {
  if (!norm_) return;
  const double n = static_cast<double>(d_head_);
  double mean = 0, squares = 0;
  if (norm_->rule == NormRule::layer) {
    for (std::size_t c = 0; c < d_head_; ++c) mean += row[c];
    mean /= n;
  }
  for (std::size_t c = 0; c < d_head_; ++c) squares += (row[c] - mean) * (row[c] - mean);
  const double root = std::sqrt(squares / n + norm_->epsilon);
  const arma::mat& factors = what == Projected::queries ? norm_->query : norm_->key;
  for (std::size_t c = 0; c < d_head_; ++c) row[c] = (row[c] - mean) / root * factors[c];
}

void Preparing::turn(std::size_t at, double* row) const {
  const double *cosine = cosines_.data() + at * pairs_.size(), *sine = sines_.data() + at * pairs_.size();
  for (std::size_t p = 0; p < pairs_.size(); ++p)
    positions::rotate_pair(row[pairs_[p].first], row[pairs_[p].second], cosine[p], sine[p]);
}

void Preparing::prepare(Projected what, std::size_t t, double* row) const {
  if (what == Projected::values) return;
  norm(what, row);
  const std::size_t count = what == Projected::queries ? n_queries_ : n_keys_;
  if (rotary_) turn(std::max(n_queries_, n_keys_) - count + t, row);
}

}  // namespace core::attention::fast
