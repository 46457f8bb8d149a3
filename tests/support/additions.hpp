#pragma once

#include "tests/support/random_model.hpp"

/// What models of today add to the paper, at random.
namespace support {

/// Other rows for keys and values, as of cross-attention or a cache; before anything that has a size of keys.
inline void add_memory(Random& random, core::attention::Model& m) {
  const std::size_t n_keys = 1 + below(random, 7), width = m.projections ? 1 + below(random, 4) : m.d_model();
  for (core::attention::Sequence& s : m.sequences) {
    s.key_embeddings = matrix(random, n_keys, width);
    s.key_tokens = core::attention::numbered_tokens(n_keys);
  }
  if (!m.projections) return;
  for (auto* linear : {&m.projections->key, &m.projections->value})
    linear->weight = matrix(random, width, linear->weight.n_cols());
}

/// Heads that share keys and values, where the number of heads can be divided.
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
  r.pairs = coin(random) ? Pairs::halves : Pairs::neighbours;
  if (d_head % 2 != 0 || coin(random)) r.dimensions = 2 * (1 + below(random, d_head / 2));
  r.first = static_cast<int>(below(random, 20)) - 5;
  r.scaling.rule = static_cast<ScalingRule>(below(random, 3));
  if (r.scaling.rule != ScalingRule::none) r.scaling.factor = 1 + static_cast<double>(below(random, 8));
  if (r.scaling.rule == ScalingRule::llama3) r.scaling.original = 8 + static_cast<double>(below(random, 64));
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

/// Norms, positions, a cap, a bias, a sink: each or not.
inline void add_additions(Random& random, core::attention::Model& m) {
  using namespace core::attention;
  Additions& a = m.additions;
  const std::size_t d_head = m.d_head();
  if (coin(random))
    a.normalise = HeadNorm{coin(random) ? NormRule::rms : NormRule::layer, matrix(random, 1, d_head),
                           matrix(random, 1, d_head), coin(random) ? 1e-6 : 0.25};
  if (d_head > 1 && coin(random)) a.positions.rotary = rotary(random, d_head);
  if (below(random, 3) == 0) {
    a.positions.alibi.emplace();
    if (coin(random)) a.positions.alibi->slopes = matrix(random, 1, m.n_heads);
  } else if (coin(random)) {
    a.positions.relative = relative(random, m.n_heads);
  }
  if (coin(random)) a.score_cap = 0.5 + static_cast<double>(below(random, 5));
  if (coin(random))
    for (std::size_t k = 0, n = coin(random) ? 1 : m.n_heads; k < n; ++k)
      a.score_bias.emplace_back(matrix(random, m.n_tokens(), m.n_keys()));
  if (coin(random)) a.sink = matrix(random, 1, m.n_heads);
}

}  // namespace support
