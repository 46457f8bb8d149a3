#include "core/attention/formulas.hpp"

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

arma::mat softmax_columns(const arma::mat& scores) {
  return softmax_rows(scores.t()).t();
}

arma::mat renormalised(const arma::mat& weights, const arma::mat& row_sums) {
  arma::mat result = weights;
  result.each_col() /= row_sums.col(0);
  return result;
}

arma::mat with_empty_rows_zeroed(const arma::mat& weights, const arma::mat& visible) {
  arma::mat result = weights;
  result.rows(arma::find(arma::sum(visible, 1) == 0)).zeros();
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
