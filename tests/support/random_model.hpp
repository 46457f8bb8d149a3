#pragma once

#include <algorithm>
#include <random>

#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"

namespace support {

using Random = std::mt19937;

/// Returns a number from 0 to n − 1, the same on every machine.
inline std::size_t below(Random& random, std::size_t n) {
  return random() % n;
}

inline bool coin(Random& random) {
  return below(random, 2) == 1;
}

/// Returns a number from −2 to 2.
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

/// Returns a causal model with projections: n_sequences of n_tokens × d_in, projected to d_out columns.
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

/// Returns a mask of zeros and ones.
inline arma::mat zeros_and_ones(Random& random, std::size_t n_queries, std::size_t n_keys) {
  arma::mat m(n_queries, n_keys);
  for (double& x : m) x = coin(random) ? 1 : 0;
  return m;
}

inline core::attention::MaskWindow mask_window(Random& random) {
  core::attention::MaskWindow window;
  if (coin(random)) window.left = below(random, 3);
  if (coin(random)) window.right = below(random, 3);
  return window;
}

/// Returns n document IDs below 3.
inline std::vector<std::size_t> documents(Random& random, std::size_t n) {
  std::vector<std::size_t> numbers(n);
  for (std::size_t& document : numbers) document = below(random, 3);
  return numbers;
}

/// Returns a padding mask [sequence] of about a quarter of the keys, or nothing if none is masked.
inline std::vector<std::vector<std::size_t>> hidden_keys(Random& random, std::size_t n_sequences,
                                                         std::size_t n_keys) {
  std::vector<std::vector<std::size_t>> all(n_sequences);
  for (auto& keys : all)
    for (std::size_t key = 0; key < n_keys; ++key)
      if (below(random, 4) == 0) keys.push_back(key);
  if (std::ranges::all_of(all, &std::vector<std::size_t>::empty)) all.clear();
  return all;
}

/// Adds some rules to the mask besides the causal one.
inline void add_mask_rules(Random& random, core::attention::Model& m) {
  if (coin(random)) m.mask.align = core::attention::MaskAlignment::first;
  if (coin(random)) m.mask.window = mask_window(random);
  if (coin(random)) m.mask.prefix = below(random, m.n_keys() + 1);
  if (coin(random) && m.n_keys() == m.n_tokens()) m.mask.documents = documents(random, m.n_tokens());
  if (coin(random)) m.mask.hidden_keys = hidden_keys(random, m.sequences.size(), m.n_keys());
}

/// Returns random numbers for a stage, in the shape that it has in the model.
inline core::attention::GivenStage given_stage(Random& random, const core::attention::Model& model,
                                               core::attention::Stage stage) {
  const auto shape = core::attention::shape_of(model, stage);
  core::attention::GivenStage given{stage, {}};
  for (std::size_t k = 0; k < model.sequences.size() * n_matrices(model, stage); ++k)
    given.matrices.emplace_back(matrix(random, shape.n_rows, shape.n_cols));
  return given;
}

// Random additions of modern models to the original attention.

/// Adds a cross-attention source or cache; call before adding anything whose size depends on the keys.
inline void add_cross_attention_source(Random& random, core::attention::Model& m) {
  const std::size_t n_keys = 1 + below(random, 7), width = m.projections ? 1 + below(random, 4) : m.d_model();
  for (core::attention::Sequence& s : m.sequences) {
    s.key_embeddings = matrix(random, n_keys, width);
    s.key_tokens = core::attention::numbered_tokens(n_keys);
  }
  if (!m.projections) return;
  for (auto* linear : {&m.projections->key, &m.projections->value})
    linear->weight = matrix(random, width, linear->weight.n_cols());
}

/// Makes heads share KV heads, if the random number of KV heads divides the number of heads.
inline void add_groups(Random& random, core::attention::Model& m) {
  const std::size_t groups = 1 + below(random, m.n_heads);
  if (!m.projections || groups == m.n_heads || m.n_heads % groups != 0) return;
  const std::size_t columns = groups * (m.d_out() / m.n_heads);
  m.n_kv_heads = groups;
  for (auto* linear : {&m.projections->key, &m.projections->value}) {
    linear->weight = matrix(random, linear->weight.n_rows(), columns);
    if (linear->bias) linear->bias = matrix(random, 1, columns);
  }
}

inline core::positions::Rotary rotary(Random& random, std::size_t d_head) {
  using namespace core::positions;
  Rotary r;
  r.base = coin(random) ? 10000 : 2 + static_cast<double>(below(random, 50));
  r.pairs = coin(random) ? Pairs::halves : Pairs::neighbors;
  if (d_head % 2 != 0 || coin(random)) r.dimensions = 2 * (1 + below(random, d_head / 2));
  r.first = static_cast<int>(below(random, 20)) - 5;
  r.scaling.rule = static_cast<ScalingRule>(below(random, 6));
  if (r.scaling.rule != ScalingRule::none) r.scaling.factor = 1 + static_cast<double>(below(random, 8));
  if (r.scaling.rule > ScalingRule::linear) r.scaling.original = 8 + static_cast<double>(below(random, 64));
  if (r.scaling.rule == ScalingRule::yarn) r.scaling.attention = 1.25, r.scaling.truncate = coin(random);
  if (r.scaling.rule == ScalingRule::dynamic) r.scaling.original = 1 + static_cast<double>(below(random, 6));
  if (r.scaling.rule == ScalingRule::longrope) {
    r.scaling.factor = 1, r.scaling.attention = 1.5;
    r.scaling.original = 1 + static_cast<double>(below(random, 6));
    r.scaling.factors =
        arma::mat(arma::abs(arma::mat(matrix(random, 2, r.dimensions.value_or(d_head) / 2))) + 0.5);
  }
  if (below(random, 3) == 0) r.inverse_frequencies = matrix(random, 1, r.dimensions.value_or(d_head) / 2);
  return r;
}

inline core::positions::Relative relative(Random& random, std::size_t n_heads) {
  core::positions::Relative r;
  r.bidirectional = coin(random);
  const std::size_t buckets = 4 + 2 * below(random, 4);
  r.table = matrix(random, n_heads, buckets);
  r.max_distance = buckets + below(random, 20);
  return r;
}

/// Adds QK norm, positions, softcap, attention bias and sink, each at random.
inline void add_additions(Random& random, core::attention::Model& m) {
  using namespace core::attention;
  Additions& a = m.additions;
  const std::size_t d_head = m.d_head();
  if (coin(random))
    a.normalize = QueryKeyNorm{coin(random) ? NormRule::rms : NormRule::layer, matrix(random, 1, d_head),
                               matrix(random, 1, d_head), coin(random) ? 1e-6 : 0.25};
  if (a.normalize && below(random, 3) == 0) {
    a.normalize->over = coin(random) ? NormScope::all_heads : NormScope::own_head;
    a.normalize->query = matrix(random, 1, m.n_heads * d_head);
    a.normalize->key = matrix(random, 1, m.kv_heads() * d_head);
  }
  if (d_head > 1 && coin(random)) a.positions.rotary = rotary(random, d_head);
  if (below(random, 3) == 0) {
    a.positions.alibi.emplace();
    if (coin(random)) a.positions.alibi->slopes = matrix(random, 1, m.n_heads);
  } else if (coin(random)) {
    a.positions.relative = relative(random, m.n_heads);
  }
  if (coin(random)) a.softcap = 0.5 + static_cast<double>(below(random, 5));
  if (coin(random))
    for (std::size_t k = 0, n = coin(random) ? 1 : m.n_heads; k < n; ++k)
      a.score_bias.emplace_back(matrix(random, m.n_tokens(), m.n_keys()));
  if (coin(random)) a.sink = matrix(random, 1, m.n_heads);
}

}  // namespace support
