#include "core/graph/formulas.hpp"

#include <algorithm>
#include <cmath>

namespace core::attention {

arma::mat project(const arma::mat& x, const Linear& linear) {
  arma::mat y = x * *linear.weight;
  if (linear.bias) y.each_row() += arma::rowvec(**linear.bias);
  return y;
}

arma::mat band(const arma::mat& x, std::size_t head, std::size_t n_heads) {
  const std::size_t d_head = x.n_cols / n_heads;
  return x.cols(head * d_head, (head + 1) * d_head - 1);
}

arma::mat every_nth_column(const arma::mat& x, std::size_t head, std::size_t n_heads) {
  return x.cols(arma::regspace<arma::uvec>(head, n_heads, x.n_cols - 1));
}

arma::mat viewed(const arma::mat& x, std::size_t head, std::size_t n_heads) {
  const std::size_t d_head = x.n_cols / n_heads, first = head * x.n_rows * d_head;
  arma::mat result(x.n_rows, d_head);
  for (std::size_t i = 0; i < x.n_rows; ++i)
    for (std::size_t k = 0; k < d_head; ++k) {
      const std::size_t nth = first + i * d_head + k;
      result(i, k) = x(nth / x.n_cols, nth % x.n_cols);
    }
  return result;
}

arma::mat divided_by_rms(const arma::mat& rows, const arma::rowvec& factors, double epsilon) {
  arma::mat result = rows;
  result.each_col() /= arma::vec(arma::sqrt(arma::mean(arma::square(rows), 1) + epsilon));
  result.each_row() %= factors;
  return result;
}

arma::mat divided_by_deviation(const arma::mat& rows, const arma::rowvec& factors, double epsilon) {
  arma::mat centred = rows;
  centred.each_col() -= arma::vec(arma::mean(rows, 1));
  return divided_by_rms(centred, factors, epsilon);
}

arma::mat scores(const arma::mat& queries, const arma::mat& keys) {
  return queries * keys.t();
}

arma::mat masked(const arma::mat& scaled_scores, const arma::mat& visible, double fill) {
  arma::mat result = scaled_scores;
  result.elem(arma::find(visible == 0)).fill(fill);
  return result;
}

arma::mat softmax_rows(const arma::mat& scores) {
  arma::mat e = scores;
  e.each_col() -= arma::vec(arma::max(scores, 1));
  e = arma::exp(e);
  return renormalised(e, arma::sum(e, 1));
}

arma::mat softmax_rows_and_sink(const arma::mat& scores, double sink) {
  return softmax_rows(arma::join_rows(scores, arma::vec(scores.n_rows, arma::fill::value(sink))))
      .head_cols(scores.n_cols);
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

arma::mat softmax_columns(const arma::mat& scores) {
  return softmax_rows(scores.t()).t();
}

arma::mat renormalised(const arma::mat& weights, const arma::mat& row_sums) {
  arma::mat result = weights;
  result.each_col() /= row_sums.col(0);
  return result;
}

bool sees_nothing(const arma::rowvec& visible, const arma::rowvec& scores) {
  return arma::all(visible == 0 || scores == -arma::datum::inf);
}

arma::mat with_empty_rows_zeroed(const arma::mat& weights, const arma::mat& visible,
                                 const arma::mat& scores) {
  arma::mat result = weights;
  for (std::size_t i = 0; i < result.n_rows; ++i)
    if (sees_nothing(visible.row(i), scores.row(i))) result.row(i).zeros();
  return result;
}

arma::mat concatenated(const std::vector<arma::mat>& contexts) {
  arma::mat all;
  for (const arma::mat& context : contexts) all = arma::join_rows(all, context);
  return all;
}

arma::mat interleaved(const std::vector<arma::mat>& contexts) {
  const std::size_t n_heads = contexts.size();
  arma::mat all(contexts.front().n_rows, n_heads * contexts.front().n_cols);
  for (std::size_t h = 0; h < n_heads; ++h)
    for (std::size_t k = 0; k < contexts[h].n_cols; ++k) all.col(k * n_heads + h) = contexts[h].col(k);
  return all;
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
