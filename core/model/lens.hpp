#pragma once

#include <armadillo>
#include <cstddef>

#include "core/model/run.hpp"

namespace core::transformer {

/// What would be predicted at one row if the model ended behind each of its layers: n_layers × n_vocabulary
/// logits, the last row the model's own.
///
/// Throws core::Error when the model has nothing to predict with. Source: nostalgebraist 2020, the logit
/// lens.
arma::fmat logits_after_layers(const Transformer& model, const Pass& pass, std::size_t row,
                               const Means& means);

/// The softmax of a row of logits, token by token: all tokens of the model together 1.
class Probabilities {
 public:
  /// Logits are divided by the temperature, above 0.
  explicit Probabilities(const arma::frowvec& logits, double temperature = 1);
  double of(std::size_t token) const;

 private:
  arma::frowvec logits_;
  double temperature_, largest_, sum_ = 0;
};

/// The probability of one token by a row of logits.
double probability_of(const arma::frowvec& logits, std::size_t token, double temperature = 1);

/// The logits at one row of a pass with one head more switched off, of which what stands before its layer is
/// taken over. Throws as logits_of() does.
arma::frowvec logits_without(const Transformer& model, const Pass& pass, std::size_t layer, std::size_t head,
                             std::size_t row, Interventions interventions, const Means& means);

}  // namespace core::transformer
