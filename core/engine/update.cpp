#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "core/engine/heads.hpp"
#include "core/engine/parts.hpp"
#include "core/engine/products.hpp"

namespace core::attention::fast {
namespace {

// A row is worked out afresh when one exponential changes more of its sum than this …
constexpr double largest_part = 0.5;
// … when an exponential is so far above that of the largest score, 1, that sums could overflow …
constexpr double highest = 4.8e8;
// … and when its roundings, in units of the last place, reach 10⁻¹² of its numbers.
constexpr float most_losses = 4096;

constexpr double highest_power = 700;  // of e: beyond, exponentials() is not to be asked

/// Asks for n numbers that are going to be changed.
void prefetch(const double* numbers, std::size_t n) {
  constexpr std::size_t line = 64 / sizeof(double);
  for (std::size_t c = 0; c < n; c += line) __builtin_prefetch(numbers + c, 1);
}

/// The exponential of key t in row i is another; false when the row must be worked out afresh.
bool change_one_weight(Heads& all, std::size_t h, std::size_t i, std::size_t t, double before, double after,
                       const double* old_value) {
  Head& head = all.heads[h];
  const double old_sum = head.sums[i], sum = old_sum + (after - before);
  const double loss = head.losses[i] * std::max(1.0, old_sum / sum) + 1;
  if (!(after < highest) || !(before < largest_part * old_sum) || !(loss < most_losses)) return false;
  const double factor = 1 / sum, kept = all.kept_factor(h, i, t) * factor;
  all.kernels->blend(all.context(h, i), old_sum * factor, after * kept, all.value(h, t), -before * kept,
                     old_value, all.d_head);
  head.sums[i] = sum;
  head.losses[i] = static_cast<float>(loss);
  return true;
}

}  // namespace

RowsRedone update_token(Heads& all, std::size_t h, std::size_t t, const double* old_value, bool asks) {
  RowsRedone redone;
  std::vector<std::size_t> rows = all.visibility.rows_that_see(t);
  if (asks) {
    redone = {{t}, work_out(all, h, t, t + 1, From::queries)};
    std::erase(rows, t);
  }

  const std::size_t n = rows.size();
  std::vector<double> key(all.d_head), exponentials(2 * n);  // of the scores before, then of those after
  for (std::size_t c = 0; c < all.d_head; ++c) key[c] = all.key(h, t, c);
  // Numbers of one column, and the contexts of one head, lie far apart: asked for before they are needed.
  constexpr std::size_t ahead = 12, contexts_ahead = 4;
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t i = rows[k];
    if (k + ahead < n) __builtin_prefetch(all.scores(h, rows[k + ahead]) + t, 1);
    double& score = all.scores(h, i)[t];
    exponentials[k] = score - all.heads[h].largest[i];
    score = all.uniform ? 0 : all.kernels->dot(all.query(h, i), key.data(), all.d_head) * all.scale;
    if (all.rules.adjusts()) score = all.rules.adjusted(h, i, t, score);
    exponentials[n + k] = std::min(score - all.heads[h].largest[i], highest_power);
  }
  all.kernels->exponentials(exponentials.data(), exponentials.size());

  for (std::size_t k = 0; k < n; ++k) {
    if (k + contexts_ahead < n) prefetch(all.context(h, rows[k + contexts_ahead]), all.d_head);
    if (change_one_weight(all, h, rows[k], t, exponentials[k], exponentials[n + k], old_value)) continue;
    redone.finite = work_out(all, h, rows[k], rows[k] + 1, From::scores) && redone.finite;
    redone.rows.push_back(rows[k]);
  }
  std::sort(redone.rows.begin(), redone.rows.end());
  return redone;
}

bool update_scores(Heads& all, std::size_t h, std::size_t first, std::size_t end, const double* row_parts,
                   const double* key_parts) {
  for (std::size_t i = first; i < end; ++i) {
    const std::size_t from = all.visibility.firsts()[i], n = all.visibility.ends()[i] - from;
    all.kernels->add(all.scores(h, i) + from, key_parts + from, row_parts[i], n);
  }
  return work_out(all, h, first, end, From::scores);
}

void update_context_column(Heads& all, std::size_t h, std::size_t first, std::size_t end, std::size_t c,
                           const double* values) {
  double* const exponentials = all.scratch(all.n_keys);
  for (std::size_t i = first; i < end; ++i) {
    const std::size_t from = all.visibility.firsts()[i], n = all.visibility.ends()[i] - from;
    if (n == 0) continue;
    row_of_exponentials(all, h, i, n, exponentials, from);
    all.context(h, i)[c] = all.kernels->dot(exponentials, values + from, n) / all.heads[h].sums[i];
  }
}

namespace {

using std::size_t;

constexpr double unit = std::numeric_limits<double>::epsilon();
constexpr double max_drift = 1e-11;  // of a score, and so of a weight's relative error

double largest_size(const std::vector<double>& numbers) {
  double most = 0;
  for (const double x : numbers) most = std::max(most, std::abs(x));
  return most;
}

bool finite(const Heads& all, const std::vector<double>& numbers) {
  return all.kernels->finite(numbers.data(), numbers.size());
}

/// Calls task(first, end) for blocks of rows, the last ones first; whether all of them were finite. A row of
/// a head takes so many multiplications for each key.
template <class Task>
bool for_blocks(const Heads& all, ThreadPool& threads, size_t multiplications, const Task& task) {
  constexpr size_t rows = 48;
  const size_t n_blocks = (all.n_queries + rows - 1) / rows;
  std::atomic<bool> all_finite{true};
  threads.run(n_blocks, all.n_queries * all.n_keys * multiplications, [&](size_t k) {
    const size_t first = (n_blocks - 1 - k) * rows;
    if (!task(first, std::min(first + rows, all.n_queries))) all_finite = false;
  });
  return all_finite;
}

HeadChange unchanged(const Heads& all) {
  return {.all = false, .first_sum = all.n_queries};
}

}  // namespace

double Engine::Parts::drift_after(double drift_before, const std::vector<double>& before,
                                  const std::vector<double>& after, double increment) const {
  // Numbers that shrink keep the roundings that they had when they were large.
  const double then = largest_size(before),
               now = std::max(largest_size(after), std::numeric_limits<double>::min());
  const double largest_score = longest_query * longest_key * std::abs(all.scale);
  return drift_before * std::max(1.0, then / now) +
         unit * (1 + (then + increment) / now) * std::max(1.0, largest_score);
}

bool Engine::Parts::allow_drift(const std::vector<double>& before, const std::vector<double>& after,
                                double increment) {
  drift.assign(drift.size(), drift_after(largest_size(drift), before, after, increment));
  return drift.front() < max_drift;
}

bool Engine::Parts::is_far_off() const {
  return largest_size(drift) > 0.9 * max_drift;
}

/// Adds to query, key and value of the token what its new number brings; false when they are to be worked out
/// afresh.
bool Engine::Parts::add_to_rows(const Model& after, const Difference& d, TokenRows& rows) {
  if (!d.increment || !after.projections) return false;
  double off = drift[d.row];
  for (size_t k = 0; k < rows.size(); ++k) {
    if (rows[k].empty()) continue;
    const std::vector<double> before = rows[k];
    const arma::rowvec w = projection(after, static_cast<Projected>(k))->weight.row(d.column);
    double most = 0;
    for (size_t c = 0; c < w.n_elem; ++c) {
      const double increment = *d.increment * w[c];
      rows[k][c] += increment;
      most = std::max(most, std::abs(increment));
    }
    off = drift_after(off, before, rows[k], most);
  }
  if (!(off < max_drift)) return false;
  drift[d.row] = off;
  return true;
}

bool Engine::Parts::update_rows(const Model& after, const Difference& d, bool asks, bool is_asked,
                                Change& change) {
  std::vector<Projected> changed;
  if (asks) changed = {Projected::queries};
  if (is_asked) changed.insert(changed.end(), {Projected::keys, Projected::values});
  TokenRows rows;
  for (const Projected what : changed) rows[static_cast<size_t>(what)] = kept_row(all, what, d.row);
  const std::vector<double> old_values = rows[2];
  if (!add_to_rows(after, d, rows)) {
    drift[d.row] = 0;
    for (const Projected what : changed)
      rows[static_cast<size_t>(what)] = projected_row(all, after, sequence, what, d.row);
  }
  for (const Projected what : changed) {
    const std::vector<double>& row = rows[static_cast<size_t>(what)];
    if (!finite(all, row)) return false;
    put_row(all, what, d.row, row.data());
  }
  for (size_t h = 0; h < all.heads.size(); ++h) {
    const auto length = [&](const double* numbers) {
      return std::sqrt(all.kernels->dot(numbers, numbers, all.d_head));
    };
    if (asks) longest_query = std::max(longest_query, length(all.query(h, d.row)));
    std::vector<double> key(all.d_head);
    for (size_t c = 0; c < all.d_head && is_asked; ++c) key[c] = all.key(h, d.row, c);
    longest_key = std::max(longest_key, length(key.data()));
  }
  if (!std::isfinite(longest_query * longest_key)) return false;
  change.heads.assign(all.heads.size(), unchanged(all));
  std::atomic<bool> all_finite{true};
  const auto task = [&](size_t h) {
    RowsRedone redone{{d.row}, true};
    std::optional<size_t> column;
    if (is_asked) {
      redone = update_token(all, h, d.row, old_values.data() + all.kv_head_of(h) * all.d_head, asks);
      column = d.row;
    } else {
      redone.finite = work_out(all, h, d.row, d.row + 1, From::queries);
    }
    if (!redone.finite) all_finite = false;
    const bool only_later =
        asks && (held.mask.is_plainly_causal() || !is_asked) && all.n_queries == all.n_keys;
    change.heads[h] = {false, std::move(redone.rows), column, only_later ? d.row : 0};
  };
  threads.run(all.heads.size(), 4 * all.n_queries * all.d_out, task);
  output.rows_changed(change.heads.front().first_sum, all.n_queries);
  return all_finite;
}

bool Engine::Parts::update_projection(const Model& after, const Difference& d, Change& change) {
  const bool of_queries = d.projected == Projected::queries;
  std::vector<double> increments(of_queries ? all.n_queries : all.n_keys, *d.increment);
  if (!d.is_bias) {
    const Sequence& s = after.sequences[sequence];
    const arma::vec x =
        (of_queries || !after.has_key_embeddings() ? s.embeddings : s.key_embeddings).column(d.row);
    for (size_t i = 0; i < increments.size(); ++i) increments[i] *= x[i];
  }
  if (!finite(all, increments)) return false;
  change.heads.assign(all.heads.size(), unchanged(all));
  std::vector<double> column;
  if (!add_to_column(d, increments, column)) return false;
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

/// The heads that have this column of queries, or of the keys or values of their group.
std::pair<size_t, size_t> Engine::Parts::heads_of(const Difference& d) const {
  const size_t part = d.column / all.d_head;
  if (d.projected == Projected::queries) return {part, part + 1};
  return {part * all.heads_a_group(), (part + 1) * all.heads_a_group()};
}

/// Adds the increments to a column of queries, keys or values, which it also returns; false when so many
/// roundings are too much.
bool Engine::Parts::add_to_column(const Difference& d, const std::vector<double>& increments,
                                  std::vector<double>& after) {
  const size_t h = heads_of(d).first, c = d.column % all.d_head, n = increments.size();
  const double most = largest_size(increments);
  std::vector<double> before(n);
  after.resize(n);
  for (size_t i = 0; i < n; ++i) {
    double& number = all.projected(d.projected, h, i, c);
    before[i] = number;
    after[i] = number += increments[i];
    all.prepare(d.projected, h, i);
  }
  if (all.is_bilinear() && d.projected != Projected::values)
    (d.projected == Projected::queries ? longest_query : longest_key) += most;
  if (!finite(all, after) || !allow_drift(before, after, most)) return false;
  return all.is_bilinear() || d.projected == Projected::values || measure_lengths();
}

/// Scores of one head after that: changed by products where that is all, else worked out from queries and
/// keys again.
bool Engine::Parts::update_column_scores(const Difference& d, size_t h,
                                         const std::vector<double>& increments) {
  if (!all.is_bilinear())
    return for_blocks(all, threads, 2 * all.d_head,
                      [&](size_t first, size_t end) { return work_out(all, h, first, end, From::queries); });
  const bool of_queries = d.projected == Projected::queries;
  const size_t c = d.column % all.d_head;
  std::vector<double> others(of_queries ? all.n_keys : all.n_queries);
  for (size_t i = 0; i < others.size(); ++i)
    others[i] = (of_queries ? all.key(h, i, c) : all.query(h, i)[c]) * all.scale;
  const std::vector<double>&row_parts = of_queries ? increments : others,
        &key_parts = of_queries ? others : increments;
  constexpr size_t of_softmax = 8;  // an exponential takes as long as so many
  return for_blocks(all, threads, all.d_head + of_softmax, [&](size_t first, size_t end) {
    return update_scores(all, h, first, end, row_parts.data(), key_parts.data());
  });
}

void Engine::Parts::update_values(size_t h, size_t c, const std::vector<double>& column) {
  for_blocks(all, threads, all.kept.bits.empty() ? 1 : all.d_head, [&](size_t first, size_t end) {
    if (!all.kept.bits.empty()) return work_out(all, h, first, end, From::weights);
    update_context_column(all, h, first, end, c, column.data());
    return true;
  });
}

bool Engine::Parts::update_mask(const Model& after, const Difference& d, Change& change) {
  all.visibility = Visibility(after, sequence);
  change.heads.assign(all.heads.size(), HeadChange{false, d.mask_rows, std::nullopt, d.mask_rows.front()});
  std::atomic<bool> all_finite{true};
  threads.run(all.heads.size(), 2 * d.mask_rows.size() * all.n_keys * all.d_out, [&](size_t h) {
    for (const size_t i : d.mask_rows) {
      hide_row(all, h, i);
      if (!work_out(all, h, i, i + 1, From::queries)) all_finite = false;
    }
  });
  output.rows_changed(d.mask_rows.front(), d.mask_rows.back() + 1);
  return all_finite;
}

bool Engine::Parts::update_all(const Model& after, From from, const Token* progress, Change& change) {
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

}  // namespace core::attention::fast
