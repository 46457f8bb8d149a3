#include <algorithm>
#include <utility>
#include <vector>

#include "core/engine/implementation.hpp"
#include "core/engine/products.hpp"
#include "core/graph/graph.hpp"

namespace core::attention::fast {
namespace {

using std::size_t;

constexpr size_t tile = 32;

/// Returns a stage that is computed row by row, or cell by cell if only some are read.
template <class Row, class Cell>
StageMatrix stage_from_rows(size_t n_rows, size_t n_cols, Row row, Cell cell) {
  return StageMatrix(LazyStage{n_rows, n_cols,
                               [n_rows, n_cols, row] {
                                 arma::mat numbers(n_rows, n_cols);
                                 std::vector<double> rows(tile * n_cols);  // the matrix is column-major
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

/// Returns a stage that is computed cell by cell.
template <class Cell>
StageMatrix stage_from_cells(size_t n_rows, size_t n_cols, Cell cell) {
  return stage_from_rows(
      n_rows, n_cols,
      [n_cols, cell](size_t i, double* row) {
        for (size_t j = 0; j < n_cols; ++j) row[j] = cell(i, j);
      },
      cell);
}

/// Rounds a number to the format.
template <class Number>
double rounded_to_format(double number) {
  return static_cast<Number>(number);
}

/// Computes one number of QKᵀ.
template <class Number>
double one_score(AllHeads<Number>& all, size_t h, size_t i, size_t j) {
  if (all.uniform) return 0;
  Number sum = 0;
  for (size_t c = 0; c < all.d_head; ++c) sum += all.query(h, i)[c] * all.key(h, j, c);
  return sum;
}

/// Computes QKᵀ of a head, many numbers at a time, each summed in the order of one_score().
template <class Number>
arma::mat all_scores(AllHeads<Number>& all, size_t h) {
  const size_t n = all.n_queries, d = all.d_head;
  arma::Mat<Number> scores(n, all.n_keys, arma::fill::zeros);
  if (all.uniform) return arma::conv_to<arma::mat>::from(std::move(scores));
  arma::Mat<Number> queries(n, d);
  for (size_t i = 0; i < n; ++i)
    for (size_t c = 0; c < d; ++c) queries.at(i, c) = all.query(h, i)[c];
  for (size_t j = 0; j < all.n_keys; ++j)
    for (size_t c = 0; c < d; ++c) {
      const Number key = all.key(h, j, c);
      const Number* const query = queries.colptr(c);
      Number* const score = scores.colptr(j);
      for (size_t i = 0; i < n; ++i) score[i] += query[i] * key;
    }
  return arma::conv_to<arma::mat>::from(std::move(scores));
}

/// Returns a stage that is computed elementwise from QKᵀ.
template <class Number, class Transform>
StageMatrix stage_from_scores(AllHeads<Number>* all, size_t h, Transform transform) {
  return StageMatrix(LazyStage{
      all->n_queries, all->n_keys,
      [all, h, transform] {
        arma::mat numbers = all_scores(*all, h);
        for (size_t j = 0; j < numbers.n_cols; ++j)
          for (size_t i = 0; i < numbers.n_rows; ++i) numbers.at(i, j) = transform(i, j, numbers.at(i, j));
        return numbers;
      },
      [all, h, transform](size_t i, size_t j) { return transform(i, j, one_score(*all, h, i, j)); }});
}

/// Returns a stage that is stored elsewhere as a whole matrix.
template <class Whole>
StageMatrix stage_from_matrix(size_t n_rows, size_t n_cols, Whole whole) {
  return StageMatrix(LazyStage{n_rows, n_cols, [whole]() -> arma::mat { return whole(); },
                               [whole](size_t i, size_t j) { return whole()(i, j); }});
}

/// Sets the stages of a head's queries and keys: projected, normalized and rotated.
template <class Number>
void set_query_key_stages(AllHeads<Number>* a, size_t h, const Additions& additions, Trace& trace) {
  const bool rotates = additions.positions.rotary.has_value();
  for (const Qkv what : {Qkv::queries, Qkv::keys}) {
    const bool is_query = what == Qkv::queries;
    const size_t n = is_query ? a->n_queries : a->n_keys, d = a->d_head;
    const auto prepared = [a, h, is_query](size_t t, size_t c) -> double {
      return is_query ? a->query(h, t)[c] : a->key(h, t, c);
    };
    const auto normed = [a, h, d, what](size_t t, double* row) {
      for (size_t c = 0; c < d; ++c) row[c] = a->projected(what, h, t, c);
      a->rules.norm(what, row);
    };
    const auto one_normed = [normed, d](size_t t, size_t c) {
      std::vector<double> row(d);
      normed(t, row.data());
      return row[c];
    };
    trace.at(is_query ? Stage::queries : Stage::keys, h) =
        stage_from_cells(n, d, [a, h, what](size_t t, size_t c) { return a->projected(what, h, t, c); });
    if (rotates)
      trace.at(is_query ? Stage::rotated_queries : Stage::rotated_keys, h) = stage_from_cells(n, d, prepared);
    if (additions.normalize)
      trace.at(is_query ? Stage::normed_queries : Stage::normed_keys, h) =
          rotates ? stage_from_rows(n, d, normed, one_normed) : stage_from_cells(n, d, prepared);
  }
}

/// Sets the score stages of a head, from QKᵀ to `last`, the one before the mask. Its unmasked numbers are the
/// stored ones, so that they equal the masked scores to the bit.
template <class Number>
void set_score_stages(AllHeads<Number>* a, size_t h, const Model& model, Stage last, Trace& trace) {
  const Additions& additions = model.additions;
  const auto stored_or = [a, h, last](Stage stage, size_t i, size_t j, double score) {
    return stage == last && a->visibility.is_unmasked(i, j) ? a->scores(h, i)[j]
                                                            : rounded_to_format<Number>(score);
  };
  trace.at(Stage::scores, h) = stage_from_scores(a, h, [](size_t, size_t, double score) { return score; });
  trace.at(Stage::scaled_scores, h) =
      stage_from_scores(a, h, [a, stored_or](size_t i, size_t j, double score) {
        return stored_or(Stage::scaled_scores, i, j, score * a->scale);
      });
  if (additions.softcap)
    trace.at(Stage::capped_scores, h) =
        stage_from_scores(a, h, [a, stored_or](size_t i, size_t j, double score) {
          return stored_or(Stage::capped_scores, i, j, a->rules.softcapped(score * a->scale));
        });
  if (additions.positions.has_bias())
    trace.at(Stage::position_bias, h) = stage_from_cells(a->n_queries, a->n_keys, [a, h](size_t i, size_t j) {
      return rounded_to_format<Number>(a->rules.position_bias(h, i, j));
    });
  if (additions.has_bias())
    trace.at(last, h) = stage_from_scores(a, h, [a, h, last, stored_or](size_t i, size_t j, double score) {
      return stored_or(last, i, j, a->rules.biased_score(h, i, j, score * a->scale));
    });
}

template <class Number>
void set_head_stages(AllHeads<Number>& all, size_t h, const Model& model, Stage last, Trace& trace) {
  AllHeads<Number>* const a = &all;
  const size_t n = all.n_queries, n_keys = all.n_keys, d = all.d_head;
  const auto weight = [a, h](size_t i, size_t j) {
    Number exponential = 0;
    a->recompute_exponentials(h, i, 1, &exponential, j);
    return rounded_to_format<Number>(exponential / a->heads[h].sums[i]);
  };
  const auto weights = [a, h](size_t i, double* row) {
    Number* exponentials = a->scratch(a->n_keys);
    a->recompute_exponentials(h, i, a->n_keys, exponentials);
    for (size_t j = 0; j < a->n_keys; ++j)
      row[j] = rounded_to_format<Number>(exponentials[j] / a->heads[h].sums[i]);
  };

  set_query_key_stages(a, h, model.additions, trace);
  set_score_stages(a, h, model, last, trace);
  trace.at(Stage::values, h) =
      stage_from_cells(n_keys, d, [a, h](size_t j, size_t c) { return a->value(h, j)[c]; });
  trace.at(Stage::masked_scores, h) =
      stage_from_cells(n, n_keys, [a, h](size_t i, size_t j) { return a->scores(h, i)[j]; });
  trace.at(Stage::weights, h) = stage_from_rows(n, n_keys, weights, weight);
  trace.at(Stage::dropout_mask, h) =
      stage_from_cells(n, n_keys, [a, h](size_t i, size_t j) { return a->kept_factor(h, i, j); });
  trace.at(Stage::dropped_weights, h) = stage_from_rows(
      n, n_keys,
      [a, h, weights](size_t i, double* row) {
        weights(i, row);
        for (size_t j = 0; j < a->n_keys; ++j)
          row[j] = rounded_to_format<Number>(row[j] * a->kept_factor(h, i, j));
      },
      [a, h, weight](size_t i, size_t j) {
        return rounded_to_format<Number>(weight(i, j) * a->kept_factor(h, i, j));
      });
  trace.at(Stage::contexts, h) =
      stage_from_cells(n, d, [a, h](size_t i, size_t c) { return a->context(h, i)[c]; });
}

}  // namespace

template <class Number>
Trace lazy_trace(AllHeads<Number>& all, const Model& model, const Model& traced_model, const size_t& sequence,
                 std::function<const arma::mat&()> output) {
  AllHeads<Number>* const a = &all;
  const Model* const m = &traced_model;
  const size_t* const s = &sequence;
  const size_t n = all.n_queries, d_out = all.d_out;
  Trace trace(all.heads.size());
  trace.at(Stage::embeddings) = stage_from_matrix(
      n, model.d_model(), [m, s]() -> const arma::mat& { return m->sequences[*s].embeddings; });
  if (model.has_key_embeddings())
    trace.at(Stage::key_embeddings) =
        stage_from_matrix(model.n_keys(), model.d_source(),
                          [m, s]() -> const arma::mat& { return m->sequences[*s].key_embeddings; });
  trace.at(Stage::mask) = stage_from_cells(
      n, all.n_keys, [a](size_t i, size_t j) { return a->visibility.is_unmasked(i, j) ? 1.0 : 0.0; });
  const Stage last = input_stage(graph::attention(model), Stage::masked_scores);
  for (size_t h = 0; h < all.heads.size(); ++h) set_head_stages(all, h, model, last, trace);
  trace.at(Stage::concatenated) =
      stage_from_matrix(n, d_out, [a, m] { return a->combined_contexts(m->merge); });
  trace.at(Stage::output) = stage_from_matrix(n, model.d_output(), std::move(output));
  return trace;
}

template Trace lazy_trace(AllHeads<double>&, const Model&, const Model&, const size_t&,
                          std::function<const arma::mat&()>);
template Trace lazy_trace(AllHeads<float>&, const Model&, const Model&, const size_t&,
                          std::function<const arma::mat&()>);

void invalidate(Trace& trace) {
  for (const StageInfo& stage : stages())
    for (std::size_t h = 0; h < stage.count(trace.n_heads()); ++h) trace.at(stage.stage, h).invalidate();
}

}  // namespace core::attention::fast
