#pragma once

#include <armadillo>
#include <cstddef>

#include "core/base/thread_pool.hpp"
#include "core/model/architecture.hpp"

namespace core::transformer {

/// Keys and values of a layer, of which the first n rows count: what was before, and what is added.
struct KeysAndValues {
  arma::fmat keys, values;  ///< at least n × n_groups · d_head
  std::size_t n = 0;

  /// Rows behind those that are there.
  void append(const arma::fmat& more_keys, const arma::fmat& more_values);
};

/// How queries of a layer see keys.
struct Sight {
  bool causal = true;
  std::size_t window = 0;  ///< keys that a query sees at most, its own among them; 0 for no limit
  float scale = 1;
};

Sight sight_of(const Architecture& architecture, std::size_t layer);

/// The keys from begin to end − 1 that the query at a place sees, of n_keys.
struct SeenKeys {
  std::size_t begin = 0, end = 0;
};
SeenKeys seen_from(const Sight& sight, std::size_t place, std::size_t n_keys);

/// The weights of a head: n_keys × n_queries, a query a column. The queries are the last of the keys.
///
/// Source: Vaswani et al. 2017, 3.2.1, without the product with the values.
arma::fmat weights_of_head(const arma::fmat& queries, const KeysAndValues& keys, const Sizes& sizes,
                           const Sight& sight, std::size_t head);

/// The contexts of all heads side by side, n_queries × n_heads · d_head.
arma::fmat attended(const arma::fmat& queries, const KeysAndValues& keys, const Sizes& sizes,
                    const Sight& sight, ThreadPool& pool);

}  // namespace core::transformer
