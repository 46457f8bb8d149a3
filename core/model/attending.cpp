#include "core/model/attending.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/model/exponential.hpp"
#include "core/model/products.hpp"

namespace core::transformer {
namespace {

/// Rows behind the first n of a matrix, which grows by half where it has no more.
void append_rows(arma::fmat& all, std::size_t n, const arma::fmat& more) {
  if (all.n_rows < n + more.n_rows) {
    arma::fmat larger(n == 0 ? more.n_rows : std::max<std::size_t>(n + more.n_rows, n + n / 2 + 16),
                      more.n_cols);
    if (n > 0) larger.rows(0, n - 1) = all.rows(0, n - 1);
    all = std::move(larger);
  }
  all.rows(n, n + more.n_rows - 1) = more;
}

/// A column of scores as weights, of which those from begin to end − 1 are seen.
void softmax_in(float* scores, std::size_t n, std::size_t begin, std::size_t end) {
  std::fill(scores, scores + begin, 0.0f);
  std::fill(scores + end, scores + n, 0.0f);
  const float largest = *std::max_element(scores + begin, scores + end);
  float sum = 0;
  for (std::size_t j = begin; j < end; ++j) scores[j] = exponential(scores[j] - largest);
  for (std::size_t j = begin; j < end; ++j) sum += scores[j];
  for (std::size_t j = begin; j < end; ++j) scores[j] /= sum;
}

}  // namespace

void KeysAndValues::append(const arma::fmat& more_keys, const arma::fmat& more_values) {
  append_rows(keys, n, more_keys);
  append_rows(values, n, more_values);
  n += more_keys.n_rows;
}

Sight sight_of(const Architecture& architecture, std::size_t layer) {
  double scale = 1 / std::sqrt(static_cast<double>(architecture.sizes.d_head));
  if (architecture.scales_by_layer) scale /= static_cast<double>(layer + 1);
  return {architecture.causal, window_of(architecture, layer), static_cast<float>(scale)};
}

SeenKeys seen_from(const Sight& sight, std::size_t place, std::size_t n_keys) {
  return {sight.window > 0 && place + 1 > sight.window ? place + 1 - sight.window : 0,
          sight.causal ? place + 1 : n_keys};
}

arma::fmat weights_of_head(const arma::fmat& queries, const KeysAndValues& keys, const Sizes& sizes,
                           const Sight& sight, std::size_t head) {
  const std::size_t d = sizes.d_head, group = head / (sizes.n_heads / sizes.n_groups);
  arma::fmat weights(keys.n, queries.n_rows, arma::fill::none);
  multiply({keys.keys.colptr(group * d), keys.keys.n_rows}, {queries.colptr(head * d), queries.n_rows, true},
           keys.n, d, queries.n_rows, sight.scale, weights.memptr(), weights.n_rows);
  const std::size_t before = keys.n - queries.n_rows;
  for (std::size_t i = 0; i < queries.n_rows; ++i) {
    const auto [begin, end] = seen_from(sight, before + i, keys.n);
    softmax_in(weights.colptr(i), keys.n, begin, end);
  }
  return weights;
}

arma::fmat attended(const arma::fmat& queries, const KeysAndValues& keys, const Sizes& sizes,
                    const Sight& sight, ThreadPool& pool) {
  const std::size_t d = sizes.d_head;
  arma::fmat contexts(queries.n_rows, sizes.n_heads * d, arma::fill::none);
  pool.run(sizes.n_heads, 2 * queries.n_elem * keys.n, [&](std::size_t head) {
    const std::size_t group = head / (sizes.n_heads / sizes.n_groups);
    const arma::fmat weights = weights_of_head(queries, keys, sizes, sight, head);
    multiply({weights.memptr(), weights.n_rows, true}, {keys.values.colptr(group * d), keys.values.n_rows},
             queries.n_rows, keys.n, d, 1, contexts.colptr(head * d), contexts.n_rows);
  });
  return contexts;
}

}  // namespace core::transformer
