#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "core/engine/heads.hpp"
#include "core/engine/implementation.hpp"
#include "core/engine/products.hpp"

namespace core::attention::fast {
namespace {

using std::size_t;

constexpr double machine_epsilon = std::numeric_limits<double>::epsilon();
constexpr double max_drift = 1e-11;  // absolute error of a score, so relative error of a weight

template <class Number>
double max_abs(const std::vector<Number>& numbers) {
  double maximum = 0;
  for (const Number x : numbers) maximum = std::max<double>(maximum, std::abs(x));
  return maximum;
}

template <class Number>
bool is_finite(const AllHeads<Number>& all, const std::vector<Number>& numbers) {
  return all.kernels->is_finite(numbers.data(), numbers.size());
}

/// Calls task(first, end) for blocks of rows, the last ones first; returns whether all were finite. A row
/// takes `multiplications` for each key.
template <class Number, class Task>
bool for_each_row_block(const AllHeads<Number>& all, ThreadPool& threads, size_t multiplications,
                        const Task& task) {
  constexpr size_t rows = 48;
  const size_t n_blocks = (all.n_queries + rows - 1) / rows;
  std::atomic<bool> all_finite{true};
  threads.run(n_blocks, all.n_queries * all.n_keys * multiplications, [&](size_t k) {
    const size_t first = (n_blocks - 1 - k) * rows;
    if (!task(first, std::min(first + rows, all.n_queries))) all_finite = false;
  });
  return all_finite;
}

template <class Number>
HeadChange unchanged(const AllHeads<Number>& all) {
  return {.all = false, .first_changed_sum = all.n_queries};
}

}  // namespace

template <class Number>
double TypedImpl<Number>::drift_after(double drift_before, const NumberList& before, const NumberList& after,
                                      double increment) const {
  // Numbers that shrink keep the rounding errors from when they were large.
  const double then = max_abs(before), now = std::max(max_abs(after), std::numeric_limits<double>::min());
  const double largest_score = max_query_norm * max_key_norm * std::abs(all.scale);
  return drift_before * std::max(1.0, then / now) +
         machine_epsilon * (1 + (then + increment) / now) * std::max(1.0, largest_score);
}

template <class Number>
bool TypedImpl<Number>::add_drift(const NumberList& before, const NumberList& after, double increment) {
  drift.assign(drift.size(), drift_after(max_abs(drift), before, after, increment));
  return drift.front() < max_drift;
}

template <class Number>
bool TypedImpl<Number>::is_near_drift_limit() const {
  return max_abs(drift) > 0.9 * max_drift;
}

/// Adds the effect of one changed embedding entry to the token's query, key and value; returns false if they
/// must be recomputed.
template <class Number>
bool TypedImpl<Number>::add_to_rows(const Model& after, const ModelDifference& d, TokenRows& rows) {
  if (!AllHeads<Number>::can_increment || !d.increment || !after.projections) return false;
  double new_drift = drift[d.row];
  for (size_t k = 0; k < rows.size(); ++k) {
    if (rows[k].empty()) continue;
    const NumberList before = rows[k];
    const arma::rowvec w = projection(after, static_cast<Qkv>(k))->weight.row(d.column);
    double maximum = 0;
    for (size_t c = 0; c < w.n_elem; ++c) {
      const double increment = *d.increment * w[c];
      rows[k][c] += static_cast<Number>(increment);
      maximum = std::max(maximum, std::abs(increment));
    }
    new_drift = drift_after(new_drift, before, rows[k], maximum);
  }
  if (!(new_drift < max_drift)) return false;
  drift[d.row] = new_drift;
  return true;
}

template <class Number>
bool TypedImpl<Number>::update_rows(const Model& after, const ModelDifference& d, bool is_query, bool is_key,
                                    UpdateResult& change) {
  std::vector<Qkv> changed;
  if (is_query) changed = {Qkv::queries};
  if (is_key) changed.insert(changed.end(), {Qkv::keys, Qkv::values});
  TokenRows rows;
  for (const Qkv what : changed) rows[static_cast<size_t>(what)] = all.stored_row(what, d.row);
  const NumberList old_values = rows[2];
  if (!add_to_rows(after, d, rows)) {
    drift[d.row] = 0;
    for (const Qkv what : changed)
      rows[static_cast<size_t>(what)] = projected_row(all, after, sequence, what, d.row);
  }
  for (const Qkv what : changed) {
    const NumberList& row = rows[static_cast<size_t>(what)];
    if (!is_finite(all, row)) return false;
    all.store_row(what, d.row, row.data());
  }
  for (size_t h = 0; h < all.heads.size(); ++h) {
    const auto length = [&](const Number* numbers) -> double {
      return std::sqrt(all.kernels->dot(numbers, numbers, all.d_head));
    };
    if (is_query) max_query_norm = std::max(max_query_norm, length(all.query(h, d.row)));
    NumberList key(all.d_head);
    for (size_t c = 0; c < all.d_head && is_key; ++c) key[c] = all.key(h, d.row, c);
    max_key_norm = std::max(max_key_norm, length(key.data()));
  }
  if (!std::isfinite(static_cast<Number>(max_query_norm * max_key_norm))) return false;
  change.heads.assign(all.heads.size(), unchanged(all));
  std::atomic<bool> all_finite{true};
  const auto task = [&](size_t h) {
    RecomputedRows recomputed{{d.row}, true};
    std::optional<size_t> column;
    if (is_key) {
      recomputed = all.update_token(h, d.row, old_values.data() + all.kv_head_of(h) * all.d_head, is_query);
      column = d.row;
    } else {
      recomputed.is_finite = all.compute_stages(h, d.row, d.row + 1, StartStage::queries);
    }
    if (!recomputed.is_finite) all_finite = false;
    const bool only_later =
        is_query && (traced_model.mask.is_only_causal() || !is_key) && all.n_queries == all.n_keys;
    change.heads[h] = {false, std::move(recomputed.rows), column, only_later ? d.row : 0};
  };
  threads.run(all.heads.size(), 4 * all.n_queries * all.d_out, task);
  output.mark_rows_changed(change.heads.front().first_changed_sum, all.n_queries);
  return all_finite;
}

template <class Number>
bool TypedImpl<Number>::update_projection(const Model& after, const ModelDifference& d,
                                          UpdateResult& change) {
  const bool of_queries = d.projected == Qkv::queries;
  const Sequence& s = after.sequences[sequence];
  const SharedMatrix& from = of_queries || !after.has_key_embeddings() ? s.embeddings : s.key_embeddings;
  NumberList increments, column;
  change.heads.assign(all.heads.size(), unchanged(all));
  if constexpr (AllHeads<Number>::can_increment) {
    increments.assign(from.n_rows(), *d.increment);
    if (!d.is_bias) {
      const arma::vec x = from.column(d.row);
      for (size_t i = 0; i < increments.size(); ++i) increments[i] *= x[i];
    }
    if (!is_finite(all, increments) || !add_to_column(d, increments, column)) return false;
  } else if (!project_column(*projection(after, d.projected), from, d, column)) {
    return false;
  }
  const auto [first_head, end_head] = affected_heads(d);
  for (size_t h = first_head; h < end_head; ++h) {
    output.mark_head_changed(h);
    if (d.projected == Qkv::values) {
      update_values(h, d.column % all.d_head, column);
      continue;
    }
    change.heads[h].all = !all.uniform;
    if (!all.uniform && !update_column_scores(d, h, increments)) return false;
  }
  return true;
}

/// Returns the heads (first, end) that use this column of queries, keys or values.
template <class Number>
std::pair<size_t, size_t> TypedImpl<Number>::affected_heads(const ModelDifference& d) const {
  const size_t part = d.column / all.d_head;
  if (d.projected == Qkv::queries) return {part, part + 1};
  return {part * all.heads_per_kv_head(), (part + 1) * all.heads_per_kv_head()};
}

/// Adds the increments to a column of queries, keys or values and stores it in `after`; returns false if the
/// rounding errors become too large.
template <class Number>
bool TypedImpl<Number>::add_to_column(const ModelDifference& d, const NumberList& increments,
                                      NumberList& after) {
  const size_t h = affected_heads(d).first, c = d.column % all.d_head, n = increments.size();
  const double maximum = max_abs(increments);
  NumberList before(n);
  after.resize(n);
  for (size_t i = 0; i < n; ++i) {
    Number& number = all.projected(d.projected, h, i, c);
    before[i] = number;
    after[i] = number += increments[i];
    all.prepare(d.projected, h, i);
  }
  if (all.is_bilinear() && d.projected != Qkv::values)
    (d.projected == Qkv::queries ? max_query_norm : max_key_norm) += maximum;
  if (!is_finite(all, after) || !add_drift(before, after, maximum)) return false;
  return all.is_bilinear() || d.projected == Qkv::values || measure_norms();
}

/// Recomputes a column of queries, keys or values with sums in float64; returns false if its numbers are too
/// large.
template <class Number>
bool TypedImpl<Number>::project_column(const Linear& linear, const arma::mat& from, const ModelDifference& d,
                                       NumberList& column) {
  arma::vec sums = from * linear.weight.column(d.column);
  if (linear.bias) sums += linear.bias->at(0, d.column);
  column.assign(sums.begin(), sums.end());
  const size_t h = affected_heads(d).first, c = d.column % all.d_head;
  for (size_t i = 0; i < column.size(); ++i) {
    all.projected(d.projected, h, i, c) = column[i];
    all.prepare(d.projected, h, i);
  }
  return is_finite(all, column) && (d.projected == Qkv::values || measure_norms());
}

/// Updates the scores of one head after such a change: by products if they are bilinear, else recomputed from
/// queries and keys.
template <class Number>
bool TypedImpl<Number>::update_column_scores(const ModelDifference& d, size_t h,
                                             const NumberList& increments) {
  if (!all.is_bilinear())
    return for_each_row_block(all, threads, 2 * all.d_head, [&](size_t first, size_t end) {
      return all.compute_stages(h, first, end, StartStage::queries);
    });
  const bool of_queries = d.projected == Qkv::queries;
  const size_t c = d.column % all.d_head;
  NumberList others(of_queries ? all.n_keys : all.n_queries);
  for (size_t i = 0; i < others.size(); ++i)
    others[i] = (of_queries ? all.key(h, i, c) : all.query(h, i)[c]) * static_cast<Number>(all.scale);
  const NumberList &row_parts = of_queries ? increments : others,
                   &key_parts = of_queries ? others : increments;
  constexpr size_t of_softmax = 8;  // multiplications that an exponential costs
  return for_each_row_block(all, threads, all.d_head + of_softmax, [&](size_t first, size_t end) {
    return all.update_scores(h, first, end, row_parts.data(), key_parts.data());
  });
}

template <class Number>
void TypedImpl<Number>::update_values(size_t h, size_t c, const NumberList& column) {
  for_each_row_block(all, threads, all.kept.bits.empty() ? 1 : all.d_head, [&](size_t first, size_t end) {
    if (!all.kept.bits.empty()) return all.compute_stages(h, first, end, StartStage::weights);
    all.update_context_column(h, first, end, c, column.data());
    return true;
  });
}

template <class Number>
bool TypedImpl<Number>::update_mask(const Model& after, const ModelDifference& d, UpdateResult& change) {
  all.visibility = UnmaskedKeys(after, sequence);
  change.heads.assign(all.heads.size(), HeadChange{false, d.mask_rows, std::nullopt, d.mask_rows.front()});
  std::atomic<bool> all_finite{true};
  threads.run(all.heads.size(), 2 * d.mask_rows.size() * all.n_keys * all.d_out, [&](size_t h) {
    for (const size_t i : d.mask_rows) {
      all.mask_row(h, i);
      if (!all.compute_stages(h, i, i + 1, StartStage::queries)) all_finite = false;
    }
  });
  output.mark_rows_changed(d.mask_rows.front(), d.mask_rows.back() + 1);
  return all_finite;
}

template <class Number>
bool TypedImpl<Number>::update_all(const Model& after, StartStage from, const StopToken* progress,
                                   UpdateResult& change) {
  prepare(after, sequence);
  if (!measure_norms()) return false;
  output.mark_all_changed();
  HeadChange every = unchanged(all);
  every.all = from == StartStage::queries;
  change.heads.assign(all.heads.size(), every);
  const std::optional<bool> is_finite = compute_all_heads(from, progress);
  change.completed = is_finite.has_value();
  return is_finite.value_or(true);
}

template <class Number>
bool TypedImpl<Number>::update(const Model& after, const ModelDifference& d, const StopToken* progress,
                               UpdateResult& change) {
  switch (d.recompute) {
    case RecomputeScope::everything:
      return false;
    case RecomputeScope::scores:
      return update_all(after, StartStage::queries, progress, change);
    case RecomputeScope::contexts:
      return update_all(after, StartStage::weights, progress, change);
    case RecomputeScope::embedding_row:
      return update_rows(after, d, true, !after.has_key_embeddings(), change);
    case RecomputeScope::source_row:
      return update_rows(after, d, false, true, change);
    case RecomputeScope::projection_number:
      return update_projection(after, d, change);
    case RecomputeScope::mask_rows:
      return update_mask(after, d, change);
    case RecomputeScope::output:
      output.mark_all_changed();
      break;
    case RecomputeScope::nothing:
      break;
  }
  change.heads.assign(traced_model.n_heads, {.all = false, .first_changed_sum = traced_model.n_tokens()});
  return true;
}

template bool TypedImpl<double>::update(const Model&, const ModelDifference&, const StopToken*,
                                        UpdateResult&);
template bool TypedImpl<float>::update(const Model&, const ModelDifference&, const StopToken*, UpdateResult&);
template bool TypedImpl<double>::is_near_drift_limit() const;
template bool TypedImpl<float>::is_near_drift_limit() const;

}  // namespace core::attention::fast
