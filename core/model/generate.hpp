#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/random.hpp"
#include "core/model/run.hpp"

namespace core::transformer {

/// Keys and values of all layers for the tokens that a model has read, so that one token more costs one row.
struct Cache {
  std::vector<KeysAndValues> layers;  ///< none before the first token
  std::size_t n_tokens = 0;
};

/// Reads tokens behind those of a cache, and gives the scores of what may follow the last of them.
///
/// Throws core::Error when the model sees both sides, there is no token, or there would be more than the
/// model takes.
arma::frowvec read_on(const Transformer& model, Cache& cache, const std::vector<std::size_t>& ids,
                      const Interventions& interventions, const Means& means);

/// How a token is chosen among those that may follow.
struct Choice {
  double temperature = 0;  ///< 0 for the most probable one; else scores are divided by it
  std::size_t top = 0;     ///< only so many of the most probable ones; 0 for all
};

/// A token by its scores, among the first n_tokens of them.
std::size_t chosen(const arma::frowvec& logits, std::size_t n_tokens, const Choice& choice,
                   random::Generator& generator);

}  // namespace core::transformer
