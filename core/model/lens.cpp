#include "core/model/lens.hpp"

#include <cmath>
#include <utility>

namespace core::transformer {

arma::fmat logits_after_layers(const Transformer& model, const Pass& pass, std::size_t row,
                               const Means& means) {
  arma::fmat rows(pass.layers.size(), pass.last.n_cols, arma::fill::none);
  for (std::size_t l = 0; l + 1 < pass.layers.size(); ++l)
    rows.row(l) = pass.layers[l + 1]->residual.row(row);
  rows.row(rows.n_rows - 1) = pass.last.row(row);
  return logits_of(model, rows, means);
}

Probabilities::Probabilities(const arma::frowvec& logits, double temperature)
    : logits_(logits), temperature_(temperature), largest_(logits.max()) {
  for (const float logit : logits_) sum_ += std::exp((logit - largest_) / temperature_);
}

double Probabilities::of(std::size_t token) const {
  return std::exp((logits_[token] - largest_) / temperature_) / sum_;
}

double probability_of(const arma::frowvec& logits, std::size_t token, double temperature) {
  return Probabilities(logits, temperature).of(token);
}

arma::frowvec logits_without(const Transformer& model, const Pass& pass, std::size_t layer, std::size_t head,
                             std::size_t row, Interventions interventions, const Means& means) {
  interventions.heads_off.insert({layer, head});
  const Pass without = run_from(model, pass, layer, interventions, means);
  return logits_of(model, without.last.row(row), means).as_row();
}

}  // namespace core::transformer
