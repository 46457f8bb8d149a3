#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "core/engine/heads.hpp"
#include "core/engine/parts.hpp"
#include "core/engine/products.hpp"

namespace core::attention::fast {
namespace {

using std::size_t;

constexpr double unit = std::numeric_limits<double>::epsilon();
constexpr double max_drift = 1e-11;  // absolute error of a score, so relative error of a weight

template <class Number>
double largest_size(const std::vector<Number>& numbers) {
  double most = 0;
  for (const Number x : numbers) most = std::max<double>(most, std::abs(x));
  return most;
}

template <class Number>
bool finite(const Heads<Number>& all, const std::vector<Number>& numbers) {
  return all.kernels->finite(numbers.data(), numbers.size());
}

/// Calls task(first, end) for blocks of rows, the last ones first; returns whether all were finite. A row
/// takes `multiplications` for each key.
template <class Number, class Task>
bool for_blocks(const Heads<Number>& all, ThreadPool& threads, size_t multiplications, const Task& task) {
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
HeadChange unchanged(const Heads<Number>& all) {
  return {.all = false, .first_sum = all.n_queries};
}

}  // namespace

template <class Number>
double PartsIn<Number>::drift_after(double drift_before, const Numbers& before, const Numbers& after,
                                    double increment) const {
  // Numbers that shrink keep the rounding errors from when they were large.
  const double then = largest_size(before),
               now = std::max(largest_size(after), std::numeric_limits<double>::min());
  const double largest_score = longest_query * longest_key * std::abs(all.scale);
  return drift_before * std::max(1.0, then / now) +
         unit * (1 + (then + increment) / now) * std::max(1.0, largest_score);
}

template <class Number>
bool PartsIn<Number>::allow_drift(const Numbers& before, const Numbers& after, double increment) {
  drift.assign(drift.size(), drift_after(largest_size(drift), before, after, increment));
  return drift.front() < max_drift;
}

template <class Number>
bool PartsIn<Number>::is_far_off() const {
  return largest_size(drift) > 0.9 * max_drift;
}

/// Adds the effect of one changed embedding entry to the token's query, key and value; returns false if they
/// must be recomputed.
template <class Number>
bool PartsIn<Number>::add_to_rows(const Model& after, const Difference& d, TokenRows& rows) {
  if (!Heads<Number>::is_fine || !d.increment || !after.projections) return false;
  double off = drift[d.row];
  for (size_t k = 0; k < rows.size(); ++k) {
    if (rows[k].empty()) continue;
    const Numbers before = rows[k];
    const arma::rowvec w = projection(after, static_cast<Projected>(k))->weight.row(d.column);
    double most = 0;
    for (size_t c = 0; c < w.n_elem; ++c) {
      const double increment = *d.increment * w[c];
      rows[k][c] += static_cast<Number>(increment);
      most = std::max(most, std::abs(increment));
    }
    off = drift_after(off, before, rows[k], most);
  }
  if (!(off < max_drift)) return false;
  drift[d.row] = off;
  return true;
}

template <class Number>
bool PartsIn<Number>::update_rows(const Model& after, const Difference& d, bool is_query, bool is_key,
                                  Change& change) {
  std::vector<Projected> changed;
  if (is_query) changed = {Projected::queries};
  if (is_key) changed.insert(changed.end(), {Projected::keys, Projected::values});
  TokenRows rows;
  for (const Projected what : changed) rows[static_cast<size_t>(what)] = all.kept_row(what, d.row);
  const Numbers old_values = rows[2];
  if (!add_to_rows(after, d, rows)) {
    drift[d.row] = 0;
    for (const Projected what : changed)
      rows[static_cast<size_t>(what)] = projected_row(all, after, sequence, what, d.row);
  }
  for (const Projected what : changed) {
    const Numbers& row = rows[static_cast<size_t>(what)];
    if (!finite(all, row)) return false;
    all.put_row(what, d.row, row.data());
  }
  for (size_t h = 0; h < all.heads.size(); ++h) {
    const auto length = [&](const Number* numbers) -> double {
      return std::sqrt(all.kernels->dot(numbers, numbers, all.d_head));
    };
    if (is_query) longest_query = std::max(longest_query, length(all.query(h, d.row)));
    Numbers key(all.d_head);
    for (size_t c = 0; c < all.d_head && is_key; ++c) key[c] = all.key(h, d.row, c);
    longest_key = std::max(longest_key, length(key.data()));
  }
  if (!std::isfinite(static_cast<Number>(longest_query * longest_key))) return false;
  change.heads.assign(all.heads.size(), unchanged(all));
  std::atomic<bool> all_finite{true};
  const auto task = [&](size_t h) {
    RowsRedone redone{{d.row}, true};
    std::optional<size_t> column;
    if (is_key) {
      redone = all.update_token(h, d.row, old_values.data() + all.kv_head_of(h) * all.d_head, is_query);
      column = d.row;
    } else {
      redone.finite = all.work_out(h, d.row, d.row + 1, From::queries);
    }
    if (!redone.finite) all_finite = false;
    const bool only_later =
        is_query && (held.mask.is_plainly_causal() || !is_key) && all.n_queries == all.n_keys;
    change.heads[h] = {false, std::move(redone.rows), column, only_later ? d.row : 0};
  };
  threads.run(all.heads.size(), 4 * all.n_queries * all.d_out, task);
  output.rows_changed(change.heads.front().first_sum, all.n_queries);
  return all_finite;
}

template <class Number>
bool PartsIn<Number>::update_projection(const Model& after, const Difference& d, Change& change) {
  const bool of_queries = d.projected == Projected::queries;
  const Sequence& s = after.sequences[sequence];
  const SharedMatrix& from = of_queries || !after.has_key_embeddings() ? s.embeddings : s.key_embeddings;
  Numbers increments, column;
  change.heads.assign(all.heads.size(), unchanged(all));
  if constexpr (Heads<Number>::is_fine) {
    increments.assign(from.n_rows(), *d.increment);
    if (!d.is_bias) {
      const arma::vec x = from.column(d.row);
      for (size_t i = 0; i < increments.size(); ++i) increments[i] *= x[i];
    }
    if (!finite(all, increments) || !add_to_column(d, increments, column)) return false;
  } else if (!project_column(*projection(after, d.projected), from, d, column)) {
    return false;
  }
  const auto [first_head, end_head] = heads_of(d);
  for (size_t h = first_head; h < end_head; ++h) {
    output.head_changed(h);
    if (d.projected == Projected::values) {
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
std::pair<size_t, size_t> PartsIn<Number>::heads_of(const Difference& d) const {
  const size_t part = d.column / all.d_head;
  if (d.projected == Projected::queries) return {part, part + 1};
  return {part * all.heads_a_group(), (part + 1) * all.heads_a_group()};
}

/// Adds the increments to a column of queries, keys or values and stores it in `after`; returns false if the
/// rounding errors become too large.
template <class Number>
bool PartsIn<Number>::add_to_column(const Difference& d, const Numbers& increments, Numbers& after) {
  const size_t h = heads_of(d).first, c = d.column % all.d_head, n = increments.size();
  const double most = largest_size(increments);
  Numbers before(n);
  after.resize(n);
  for (size_t i = 0; i < n; ++i) {
    Number& number = all.projected(d.projected, h, i, c);
    before[i] = number;
    after[i] = number += increments[i];
    all.prepare(d.projected, h, i);
  }
  if (all.is_bilinear() && d.projected != Projected::values)
    (d.projected == Projected::queries ? longest_query : longest_key) += most;
  if (!finite(all, after) || !allow_drift(before, after, most)) return false;
  return all.is_bilinear() || d.projected == Projected::values || measure_lengths();
}

/// Recomputes a column of queries, keys or values with sums in float64; returns false if its numbers are too
/// large.
template <class Number>
bool PartsIn<Number>::project_column(const Linear& linear, const arma::mat& from, const Difference& d,
                                     Numbers& column) {
  arma::vec sums = from * linear.weight.column(d.column);
  if (linear.bias) sums += linear.bias->at(0, d.column);
  column.assign(sums.begin(), sums.end());
  const size_t h = heads_of(d).first, c = d.column % all.d_head;
  for (size_t i = 0; i < column.size(); ++i) {
    all.projected(d.projected, h, i, c) = column[i];
    all.prepare(d.projected, h, i);
  }
  return finite(all, column) && (d.projected == Projected::values || measure_lengths());
}

/// Updates the scores of one head after such a change: by products if they are bilinear, else recomputed from
/// queries and keys.
template <class Number>
bool PartsIn<Number>::update_column_scores(const Difference& d, size_t h, const Numbers& increments) {
  if (!all.is_bilinear())
    return for_blocks(all, threads, 2 * all.d_head,
                      [&](size_t first, size_t end) { return all.work_out(h, first, end, From::queries); });
  const bool of_queries = d.projected == Projected::queries;
  const size_t c = d.column % all.d_head;
  Numbers others(of_queries ? all.n_keys : all.n_queries);
  for (size_t i = 0; i < others.size(); ++i)
    others[i] = (of_queries ? all.key(h, i, c) : all.query(h, i)[c]) * static_cast<Number>(all.scale);
  const Numbers &row_parts = of_queries ? increments : others, &key_parts = of_queries ? others : increments;
  constexpr size_t of_softmax = 8;  // multiplications that an exponential costs
  return for_blocks(all, threads, all.d_head + of_softmax, [&](size_t first, size_t end) {
    return all.update_scores(h, first, end, row_parts.data(), key_parts.data());
  });
}

template <class Number>
void PartsIn<Number>::update_values(size_t h, size_t c, const Numbers& column) {
  for_blocks(all, threads, all.kept.bits.empty() ? 1 : all.d_head, [&](size_t first, size_t end) {
    if (!all.kept.bits.empty()) return all.work_out(h, first, end, From::weights);
    all.update_context_column(h, first, end, c, column.data());
    return true;
  });
}

template <class Number>
bool PartsIn<Number>::update_mask(const Model& after, const Difference& d, Change& change) {
  all.visibility = Visibility(after, sequence);
  change.heads.assign(all.heads.size(), HeadChange{false, d.mask_rows, std::nullopt, d.mask_rows.front()});
  std::atomic<bool> all_finite{true};
  threads.run(all.heads.size(), 2 * d.mask_rows.size() * all.n_keys * all.d_out, [&](size_t h) {
    for (const size_t i : d.mask_rows) {
      all.hide_row(h, i);
      if (!all.work_out(h, i, i + 1, From::queries)) all_finite = false;
    }
  });
  output.rows_changed(d.mask_rows.front(), d.mask_rows.back() + 1);
  return all_finite;
}

template <class Number>
bool PartsIn<Number>::update_all(const Model& after, From from, const Token* progress, Change& change) {
  prepare(after, sequence);
  if (!measure_lengths()) return false;
  output.all_changed();
  HeadChange every = unchanged(all);
  every.all = from == From::queries;
  change.heads.assign(all.heads.size(), every);
  const std::optional<bool> finite = work_out_all(from, progress);
  change.completed = finite.has_value();
  return finite.value_or(true);
}

template <class Number>
bool PartsIn<Number>::update(const Model& after, const Difference& d, const Token* progress, Change& change) {
  switch (d.redo) {
    case Redo::everything:
      return false;
    case Redo::scores:
      return update_all(after, From::queries, progress, change);
    case Redo::contexts:
      return update_all(after, From::weights, progress, change);
    case Redo::embedding_row:
      return update_rows(after, d, true, !after.has_key_embeddings(), change);
    case Redo::source_row:
      return update_rows(after, d, false, true, change);
    case Redo::projection_number:
      return update_projection(after, d, change);
    case Redo::mask_rows:
      return update_mask(after, d, change);
    case Redo::output:
      output.all_changed();
      break;
    case Redo::nothing:
      break;
  }
  change.heads.assign(held.n_heads, {.all = false, .first_sum = held.n_tokens()});
  return true;
}

template bool PartsIn<double>::update(const Model&, const Difference&, const Token*, Change&);
template bool PartsIn<float>::update(const Model&, const Difference&, const Token*, Change&);
template bool PartsIn<double>::is_far_off() const;
template bool PartsIn<float>::is_far_off() const;

}  // namespace core::attention::fast
