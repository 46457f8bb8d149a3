#include <algorithm>
#include <utility>
#include <vector>

#include "core/engine/parts.hpp"
#include "core/engine/products.hpp"
#include "core/graph/stages.hpp"

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

/// One number of QKᵀ.
double one_score(Heads& all, size_t h, size_t i, size_t j) {
  if (all.uniform) return 0;
  double sum = 0;
  for (size_t c = 0; c < all.d_head; ++c) sum += all.query(h, i)[c] * all.key(h, j, c);
  return sum;
}

/// QKᵀ of a head, each number summed in the same order as one cell alone, but many at a time.
arma::mat all_scores(Heads& all, size_t h) {
  const size_t n = all.n_queries, d = all.d_head;
  arma::mat scores(n, all.n_keys, arma::fill::zeros);
  if (all.uniform) return scores;
  arma::mat queries(n, d);
  for (size_t i = 0; i < n; ++i)
    for (size_t c = 0; c < d; ++c) queries.at(i, c) = all.query(h, i)[c];
  for (size_t j = 0; j < all.n_keys; ++j)
    for (size_t c = 0; c < d; ++c) {
      const double key = all.key(h, j, c);
      const double* const query = queries.colptr(c);
      double* const score = scores.colptr(j);
      for (size_t i = 0; i < n; ++i) score[i] += query[i] * key;
    }
  return scores;
}

/// A stage whose numbers are made of QKᵀ, each by itself.
template <class Made>
StageMatrix by_scores(Heads* all, size_t h, Made made) {
  return StageMatrix(
      StageMaker{all->n_queries, all->n_keys,
                 [all, h, made] {
                   arma::mat numbers = all_scores(*all, h);
                   for (size_t j = 0; j < numbers.n_cols; ++j)
                     for (size_t i = 0; i < numbers.n_rows; ++i)
                       numbers.at(i, j) = made(i, j, numbers.at(i, j));
                   return numbers;
                 },
                 [all, h, made](size_t i, size_t j) { return made(i, j, one_score(*all, h, i, j)); }});
}

/// A stage that is a matrix of its own elsewhere.
template <class Whole>
StageMatrix by_whole(size_t n_rows, size_t n_cols, Whole whole) {
  return StageMatrix(StageMaker{n_rows, n_cols, [whole]() -> arma::mat { return whole(); },
                                [whole](size_t i, size_t j) { return whole()(i, j); }});
}

/// Queries and keys of a head before and after what is done to them.
void put_prepared(Heads* a, size_t h, const TraceKind& kind, HeadTrace& head) {
  const size_t n = a->n_queries, n_keys = a->n_keys, d = a->d_head;
  const auto query = [a, h](size_t i, size_t c) { return a->query(h, i)[c]; };
  const auto key = [a, h](size_t j, size_t c) { return a->key(h, j, c); };
  head.queries = by_cells(n, d, [a, h](size_t i, size_t c) { return a->bare_query(h, i)[c]; });
  head.keys = by_cells(n_keys, d, [a, h](size_t j, size_t c) { return a->bare_key(h, j, c); });
  Prepared& prepared = head.prepared;
  if (kind.turns)
    prepared.rotated_queries = by_cells(n, d, query), prepared.rotated_keys = by_cells(n_keys, d, key);
  if (!kind.norms) return;
  const auto normed = [a, h, d](Projected what, size_t t, double* row) {
    for (size_t c = 0; c < d; ++c)
      row[c] = what == Projected::queries ? a->bare_query(h, t)[c] : a->bare_key(h, t, c);
    a->preparing.norm(what, row);
  };
  const auto of = [&](Projected what, size_t n_rows) {
    return by_rows(
        n_rows, d, [normed, what](size_t t, double* row) { normed(what, t, row); },
        [normed, what, d](size_t t, size_t c) {
          std::vector<double> row(d);
          normed(what, t, row.data());
          return row[c];
        });
  };
  prepared.normed_queries = kind.turns ? of(Projected::queries, n) : by_cells(n, d, query);
  prepared.normed_keys = kind.turns ? of(Projected::keys, n_keys) : by_cells(n_keys, d, key);
}

/// Scores of a head from QKᵀ to what the mask is laid on. Where it is visible, the last of them is the very
/// number that is kept: the masked scores are the same to the bit.
void put_scores(Heads* a, size_t h, const TraceKind& kind, HeadTrace& head) {
  const auto kept_or = [a, h](size_t i, size_t j, double hidden) {
    return a->visibility.sees(i, j) ? a->scores(h, i)[j] : hidden;
  };
  const auto capped = [a, caps = kind.caps](double score) {
    return caps ? a->adjusting.capped(score * a->scale) : score * a->scale;
  };
  head.scores = by_scores(a, h, [](size_t, size_t, double score) { return score; });
  const bool scaled_last = !kind.caps && !kind.adds;
  head.scaled_scores = by_scores(a, h, [a, kept_or, scaled_last](size_t i, size_t j, double score) {
    return scaled_last ? kept_or(i, j, score * a->scale) : score * a->scale;
  });
  if (kind.caps)
    head.adjusted.capped_scores =
        by_scores(a, h, [kept_or, capped, last = !kind.adds](size_t i, size_t j, double score) {
          return last ? kept_or(i, j, capped(score)) : capped(score);
        });
  if (kind.places)
    head.adjusted.position_bias = by_cells(
        a->n_queries, a->n_keys, [a, h](size_t i, size_t j) { return a->adjusting.position_bias(h, i, j); });
  if (kind.adds)
    head.adjusted.biased_scores = by_scores(a, h, [a, h, kept_or, capped](size_t i, size_t j, double score) {
      return kept_or(i, j, capped(score) + a->adjusting.bias(h, i, j));
    });
}

HeadTrace head_on_request(Heads& all, size_t h, const TraceKind& kind) {
  Heads* const a = &all;
  const size_t n = all.n_queries, n_keys = all.n_keys, d = all.d_head;
  const auto weight = [a, h](size_t i, size_t j) {
    double exponential = 0;
    row_of_exponentials(*a, h, i, 1, &exponential, j);
    return exponential / a->heads[h].sums[i];
  };
  const auto weights = [a, h](size_t i, double* row) {
    row_of_exponentials(*a, h, i, a->n_keys, row);
    for (size_t j = 0; j < a->n_keys; ++j) row[j] /= a->heads[h].sums[i];
  };

  HeadTrace head;
  put_prepared(a, h, kind, head);
  put_scores(a, h, kind, head);
  head.values = by_cells(n_keys, d, [a, h](size_t j, size_t c) { return a->value(h, j)[c]; });
  head.masked_scores = by_cells(n, n_keys, [a, h](size_t i, size_t j) { return a->scores(h, i)[j]; });
  head.weights = by_rows(n, n_keys, weights, weight);
  head.dropout_mask = by_cells(n, n_keys, [a, h](size_t i, size_t j) { return a->kept_factor(h, i, j); });
  head.dropped_weights = by_rows(
      n, n_keys,
      [a, h, weights](size_t i, double* row) {
        weights(i, row);
        for (size_t j = 0; j < a->n_keys; ++j) row[j] *= a->kept_factor(h, i, j);
      },
      [a, h, weight](size_t i, size_t j) { return weight(i, j) * a->kept_factor(h, i, j); });
  head.contexts = by_cells(n, d, [a, h](size_t i, size_t c) { return a->context(h, i)[c]; });
  return head;
}

}  // namespace

TraceKind kind_of(const Model& m) {
  const Additions& a = m.additions;
  TraceKind kind{m.d_model(), m.d_output()};
  if (m.has_memory()) kind.n_memory = m.n_keys(), kind.d_memory = m.d_memory();
  kind.norms = a.normalise.has_value(), kind.turns = a.positions.rotary.has_value();
  kind.caps = a.score_cap.has_value(), kind.places = a.positions.has_bias(), kind.adds = a.has_bias();
  return kind;
}

Trace trace_on_request(Heads& all, const Model& model, const Model& held, const size_t& sequence,
                       std::function<const arma::mat&()> output) {
  Heads* const a = &all;
  const Model* const m = &held;
  const size_t* const s = &sequence;
  const size_t n = all.n_queries, d_out = all.d_out;
  const TraceKind kind = kind_of(model);
  Trace trace;
  trace.embeddings =
      by_whole(n, model.d_model(), [m, s]() -> const arma::mat& { return m->sequences[*s].embeddings; });
  if (model.has_memory())
    trace.key_embeddings = by_whole(kind.n_memory, kind.d_memory,
                                    [m, s]() -> const arma::mat& { return m->sequences[*s].key_embeddings; });
  trace.mask =
      by_cells(n, all.n_keys, [a](size_t i, size_t j) { return a->visibility.sees(i, j) ? 1.0 : 0.0; });
  for (size_t h = 0; h < all.heads.size(); ++h) trace.heads.push_back(head_on_request(all, h, kind));
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
