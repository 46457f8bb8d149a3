#include "core/graph/formulas.hpp"

#include <algorithm>
#include <cmath>

namespace core::attention {

arma::mat project(const arma::mat& x, const Linear& linear) {
  arma::mat y = x * *linear.weight;
  if (linear.bias) y.each_row() += arma::rowvec(**linear.bias);
  return y;
}

arma::mat masked(const arma::mat& scaled_scores, const arma::mat& visible, double fill) {
  arma::mat result = scaled_scores;
  result.elem(arma::find(visible == 0)).fill(fill);
  return result;
}

BlockMaxima block_maxima(const arma::rowvec& scores, const Blocks& blocks) {
  const std::size_t n = scores.n_elem;
  const std::size_t kept =
      blocks.rule == BlockRule::last_dropped && n > 0 ? (n - 1) / blocks.size * blocks.size : n;
  arma::rowvec so_far(n);
  double largest = -arma::datum::inf;
  for (std::size_t first = 0; first < kept; first += blocks.size) {
    const std::size_t end = std::min(first + blocks.size, kept);
    for (std::size_t j = first; j < end; ++j) largest = std::max(largest, scores[j]);
    for (std::size_t j = first; j < end; ++j) so_far[j] = largest;
  }
  arma::rowvec whole(n, arma::fill::value(largest));
  for (std::size_t j = kept; j < n; ++j) so_far[j] = whole[j] = arma::datum::inf;
  const bool own = blocks.rule == BlockRule::not_rescaled || blocks.rule == BlockRule::contexts_not_rescaled;
  const bool summed = blocks.rule == BlockRule::not_rescaled || blocks.rule == BlockRule::sum_not_rescaled;
  return {own ? so_far : whole, summed ? so_far : whole, largest};
}

arma::mat softmax_in_blocks(const arma::mat& scores, const Blocks& blocks, std::optional<double> sink) {
  arma::mat weights(arma::size(scores));
  for (std::size_t i = 0; i < scores.n_rows; ++i) {
    const arma::rowvec row = scores.row(i);
    const auto [own, summed, last] = block_maxima(row, blocks);
    const auto term = [&](std::size_t j, const arma::rowvec& largest) {
      return row[j] == -arma::datum::inf ? 0 : std::exp(row[j] - largest[j]);
    };
    double sum = 0;
    for (std::size_t j = 0; j < row.n_elem; ++j) sum += term(j, summed);
    if (sink) sum += std::exp(*sink - last);
    for (std::size_t j = 0; j < row.n_elem; ++j) weights(i, j) = term(j, own) / sum;
  }
  return weights;
}

bool sees_nothing(const arma::rowvec& visible, const arma::rowvec& scores) {
  return arma::all(visible == 0 || scores == -arma::datum::inf);
}

arma::mat reshaped_without_transpose(const std::vector<arma::mat>& contexts) {
  const std::size_t n_tokens = contexts.front().n_rows, d_head = contexts.front().n_cols;
  arma::mat all(contexts.size() * d_head, n_tokens);  // one token a column, so that memory runs along a row
  double* next = all.memptr();
  for (const arma::mat& context : contexts)
    for (std::size_t i = 0; i < n_tokens; ++i)
      for (std::size_t c = 0; c < d_head; ++c) *next++ = context(i, c);
  return all.t();
}

}  // namespace core::attention
