#include "core/attention/fast/requests.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/attention/fast/output.hpp"
#include "core/attention/fast/projecting.hpp"
#include "core/attention/stages.hpp"

namespace core::attention::fast {
namespace {

using std::size_t;

constexpr size_t tile = 32;

/// A stage given row by row, and cell by cell where only some are read.
template <class Row, class Cell>
StageMatrix by_rows(size_t n_rows, size_t n_cols, Row row, Cell cell) {
  return StageMatrix(StageMaker{n_rows, n_cols,
                                [n_rows, n_cols, row] {
                                  arma::mat numbers(n_rows, n_cols);
                                  std::vector<double> rows(tile * n_cols);  // columns lie one after the other
                                  for (size_t first = 0; first < n_rows; first += tile) {
                                    const size_t n = std::min(tile, n_rows - first);
                                    for (size_t i = 0; i < n; ++i) row(first + i, &rows[i * n_cols]);
                                    for (size_t j = 0; j < n_cols; ++j)
                                      for (size_t i = 0; i < n; ++i)
                                        numbers.at(first + i, j) = rows[i * n_cols + j];
                                  }
                                  return numbers;
                                },
                                cell, row});
}

/// A stage given cell by cell.
template <class Cell>
StageMatrix by_cells(size_t n_rows, size_t n_cols, Cell cell) {
  return by_rows(
      n_rows, n_cols,
      [n_cols, cell](size_t i, double* row) {
        for (size_t j = 0; j < n_cols; ++j) row[j] = cell(i, j);
      },
      cell);
}

/// QKᵀ of a head, each number summed in the same order as one cell alone, but many at a time.
arma::mat all_scores(Heads& all, size_t h) {
  const size_t n = all.n_tokens, d = all.d_head;
  arma::mat scores(n, n, arma::fill::zeros);
  if (all.uniform) return scores;
  arma::mat queries(n, d);
  for (size_t i = 0; i < n; ++i)
    for (size_t c = 0; c < d; ++c) queries.at(i, c) = all.query(h, i)[c];
  for (size_t j = 0; j < n; ++j)
    for (size_t c = 0; c < d; ++c) {
      const double key = all.key(h, j, c);
      const double* const query = queries.colptr(c);
      double* const score = scores.colptr(j);
      for (size_t i = 0; i < n; ++i) score[i] += query[i] * key;
    }
  return scores;
}

/// A stage that is a matrix of its own elsewhere.
template <class Whole>
StageMatrix by_whole(size_t n_rows, size_t n_cols, Whole whole) {
  return StageMatrix(StageMaker{n_rows, n_cols, [whole]() -> arma::mat { return whole(); },
                                [whole](size_t i, size_t j) { return whole()(i, j); }});
}

HeadTrace head_on_request(Heads& all, size_t h) {
  Heads* const a = &all;
  const size_t n = all.n_tokens, d = all.d_head;
  const auto score = [a, h, d](size_t i, size_t j) {
    if (a->uniform) return 0.0;
    double sum = 0;
    for (size_t c = 0; c < d; ++c) sum += a->query(h, i)[c] * a->key(h, j, c);
    return sum;
  };
  const auto weight = [a, h](size_t i, size_t j) {
    double exponential = 0;
    row_of_exponentials(*a, h, i, 1, &exponential, j);
    return exponential / a->heads[h].sums[i];
  };
  const auto weights = [a, h](size_t i, double* row) {
    row_of_exponentials(*a, h, i, a->n_tokens, row);
    for (size_t j = 0; j < a->n_tokens; ++j) row[j] /= a->heads[h].sums[i];
  };

  HeadTrace head;
  head.queries = by_cells(n, d, [a, h](size_t i, size_t c) { return a->query(h, i)[c]; });
  head.keys = by_cells(n, d, [a, h](size_t j, size_t c) { return a->key(h, j, c); });
  head.values = by_cells(n, d, [a, h](size_t j, size_t c) { return a->value(h, j)[c]; });
  head.scores = StageMatrix(StageMaker{n, n, [a, h] { return all_scores(*a, h); }, score});
  // Where it is visible, the very number that is kept: the masked scores are the same to the bit.
  const auto scaled = [a, h](size_t i, size_t j, double hidden_score) {
    return a->visibility.sees(i, j) ? a->scores(h, i)[j] : hidden_score * a->scale;
  };
  head.scaled_scores =
      StageMatrix(StageMaker{n, n,
                             [a, h, scaled] {
                               arma::mat numbers = all_scores(*a, h);
                               for (size_t j = 0; j < numbers.n_cols; ++j)
                                 for (size_t i = 0; i < numbers.n_rows; ++i)
                                   numbers.at(i, j) = scaled(i, j, numbers.at(i, j));
                               return numbers;
                             },
                             [score, scaled](size_t i, size_t j) { return scaled(i, j, score(i, j)); }});
  head.masked_scores = by_cells(n, n, [a, h](size_t i, size_t j) { return a->scores(h, i)[j]; });
  head.weights = by_rows(n, n, weights, weight);
  head.dropout_mask = by_cells(n, n, [a, h](size_t i, size_t j) { return a->kept_factor(h, i, j); });
  head.dropped_weights = by_rows(
      n, n,
      [a, h, weights](size_t i, double* row) {
        weights(i, row);
        for (size_t j = 0; j < a->n_tokens; ++j) row[j] *= a->kept_factor(h, i, j);
      },
      [a, h, weight](size_t i, size_t j) { return weight(i, j) * a->kept_factor(h, i, j); });
  head.contexts = by_cells(n, d, [a, h](size_t i, size_t c) { return a->context(h, i)[c]; });
  return head;
}

}  // namespace

Trace trace_on_request(Heads& all, const Model& model, const size_t& sequence,
                       std::function<const arma::mat&()> output) {
  Heads* const a = &all;
  const Model* const m = &model;
  const size_t* const s = &sequence;
  const size_t n = all.n_tokens, d_out = all.d_out;
  Trace trace;
  trace.embeddings =
      by_whole(n, model.d_model(), [m, s]() -> const arma::mat& { return m->sequences[*s].embeddings; });
  trace.mask = by_cells(n, n, [a](size_t i, size_t j) { return a->visibility.sees(i, j) ? 1.0 : 0.0; });
  for (size_t h = 0; h < all.heads.size(); ++h) trace.heads.push_back(head_on_request(all, h));
  trace.concatenated = by_whole(n, d_out, [a, m] { return merged_contexts(*a, m->merge); });
  trace.output = by_whole(n, model.d_output(), std::move(output));
  return trace;
}

void renew(Trace& trace) {
  for (const StageInfo& stage : stages())
    for (std::size_t h = 0; h < (stage.per_head ? trace.heads.size() : 1); ++h)
      matrix_of(trace, stage, h).renew();
}

}  // namespace core::attention::fast
