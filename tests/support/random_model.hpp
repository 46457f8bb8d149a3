#pragma once

#include <random>

#include "core/attention/model.hpp"
#include "core/attention/stages.hpp"

namespace support {

using Random = std::mt19937;

/// 0 … n − 1, the same on every machine.
inline std::size_t below(Random& random, std::size_t n) {
  return random() % n;
}

inline bool coin(Random& random) {
  return below(random, 2) == 1;
}

/// A number from −2 to 2.
inline double number(Random& random) {
  return static_cast<double>(random()) / 0x1p30 - 2;
}

inline arma::mat matrix(Random& random, std::size_t rows, std::size_t columns) {
  arma::mat m(rows, columns);
  for (double& x : m) x = number(random);
  return m;
}

inline core::attention::Linear linear(Random& random, std::size_t d_in, std::size_t d_out,
                                      bool bias = false) {
  core::attention::Linear l{matrix(random, d_in, d_out), std::nullopt};
  if (bias) l.bias = matrix(random, 1, d_out);
  return l;
}

/// Causal, with projections, without dropout: n_sequences of n_tokens × d_in, projected to d_out columns.
inline core::attention::Model model(Random& random, std::size_t n_tokens, std::size_t d_in, std::size_t d_out,
                                    std::size_t n_heads, std::size_t n_sequences = 1) {
  core::attention::Model m;
  for (std::size_t s = 0; s < n_sequences; ++s)
    m.sequences.push_back({core::attention::numbered_tokens(n_tokens), matrix(random, n_tokens, d_in)});
  m.projections.emplace();
  m.projections->query = linear(random, d_in, d_out);
  m.projections->key = linear(random, d_in, d_out, true);
  m.projections->value = linear(random, d_in, d_out);
  m.projections->output = linear(random, d_out, d_out, true);
  m.n_heads = n_heads;
  return m;
}

/// A mask of zeros and ones.
inline arma::mat zeros_and_ones(Random& random, std::size_t n_queries, std::size_t n_keys) {
  arma::mat m(n_queries, n_keys);
  for (double& x : m) x = coin(random) ? 1 : 0;
  return m;
}

/// Random numbers for a stage in the shape that the model's own has.
inline core::attention::GivenStage given_stage(Random& random, const core::attention::Model& model,
                                               core::attention::Stage stage) {
  const auto shape = core::attention::shape_of(model, stage);
  core::attention::GivenStage given{stage, {}};
  for (std::size_t k = 0; k < model.sequences.size() * model.n_heads; ++k)
    given.matrices.emplace_back(matrix(random, shape.n_rows, shape.n_cols));
  return given;
}

}  // namespace support
