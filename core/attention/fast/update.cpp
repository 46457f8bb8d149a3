#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "core/attention/fast/parts.hpp"
#include "core/attention/fast/projecting.hpp"
#include "core/attention/fast/updates.hpp"

namespace core::attention::fast {
namespace {

using std::size_t;

constexpr double unit = std::numeric_limits<double>::epsilon();
constexpr double most_drift = 1e-11;  // of a score, and so of a weight's relative error

double largest_size(const std::vector<double>& numbers) {
  double most = 0;
  for (const double x : numbers) most = std::max(most, std::abs(x));
  return most;
}

bool finite(const Heads& all, const std::vector<double>& numbers) {
  return all.kernels->finite(numbers.data(), numbers.size());
}

/// Calls task(first, end) for blocks of rows, the last ones first.
template <class Task>
void for_blocks(const Heads& all, ThreadPool& threads, const Task& task) {
  constexpr size_t rows = 48;
  const size_t n_blocks = (all.n_tokens + rows - 1) / rows;
  threads.run(n_blocks, [&](size_t k) {
    const size_t first = (n_blocks - 1 - k) * rows;
    task(first, std::min(first + rows, all.n_tokens));
  });
}

HeadChange unchanged(const Heads& all) {
  return {.all = false, .first_sum = all.n_tokens};
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
  drift.assign(all.n_tokens, drift_after(largest_size(drift), before, after, increment));
  return drift.front() < most_drift;
}

bool Engine::Parts::is_far_off() const {
  return largest_size(drift) > 0.9 * most_drift;
}

/// Adds to query, key and value of the token what its new number brings; false when they are to be worked out
/// afresh.
bool Engine::Parts::add_to_rows(const Model& after, const Difference& d, TokenRows& rows) {
  if (!d.increment || !after.projections) return false;
  double off = drift[d.row];
  for (size_t k = 0; k < rows.size(); ++k) {
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
  if (!(off < most_drift)) return false;
  drift[d.row] = off;
  return true;
}

bool Engine::Parts::update_embedding(const Model& after, const Difference& d, Change& change) {
  constexpr std::array all_projected{Projected::queries, Projected::keys, Projected::values};
  TokenRows rows;
  for (const Projected what : all_projected) rows[static_cast<size_t>(what)] = kept_row(all, what, d.row);
  const std::vector<double> old_values = rows[2];
  if (!add_to_rows(after, d, rows)) {
    drift[d.row] = 0;
    for (const Projected what : all_projected)
      rows[static_cast<size_t>(what)] = projected_row(all, after, sequence, what, d.row);
  }
  for (const Projected what : all_projected) {
    const std::vector<double>& row = rows[static_cast<size_t>(what)];
    if (!finite(all, row)) return false;
    put_row(all, what, d.row, row.data());
  }
  for (size_t h = 0; h < all.heads.size(); ++h) {
    const auto length = [&](const std::vector<double>& row) {
      const double* numbers = row.data() + h * all.d_head;
      return std::sqrt(all.kernels->dot(numbers, numbers, all.d_head));
    };
    longest_query = std::max(longest_query, length(rows[0]));
    longest_key = std::max(longest_key, length(rows[1]));
  }
  change.heads.assign(all.heads.size(), unchanged(all));
  std::atomic<bool> all_finite{true};
  const auto task = [&](size_t h) {
    RowsRedone redone = update_token(all, h, d.row, old_values.data() + h * all.d_head);
    if (!redone.finite) all_finite = false;
    change.heads[h] = {false, std::move(redone.rows), d.row, held.mask.is_plainly_causal() ? d.row : 0};
  };
  threads.run(all.heads.size(), 4 * all.n_tokens * all.d_out, task);
  output.rows_changed(change.heads.front().first_sum, all.n_tokens);
  return all_finite;
}

bool Engine::Parts::update_projection(const Model& after, const Difference& d, Change& change) {
  std::vector<double> increments(all.n_tokens, *d.increment);
  if (!d.is_bias) {
    const arma::vec x = after.sequences[sequence].embeddings.column(d.row);
    for (size_t i = 0; i < all.n_tokens; ++i) increments[i] *= x[i];
  }
  if (!finite(all, increments)) return false;
  change.heads.assign(all.heads.size(), unchanged(all));
  const size_t h = d.column / all.d_head;
  change.heads[h].all = d.projected != Projected::values;
  output.head_changed(h);
  return d.projected == Projected::values ? update_value(d, increments)
                                          : update_query_or_key(d, increments, change);
}

bool Engine::Parts::update_query_or_key(const Difference& d, const std::vector<double>& increments,
                                        Change& change) {
  const size_t h = d.column / all.d_head, c = d.column % all.d_head;
  const bool of_queries = d.projected == Projected::queries;
  std::vector<double> before(all.n_tokens), after(all.n_tokens), others(all.n_tokens);
  for (size_t i = 0; i < all.n_tokens; ++i) {
    double& number = of_queries ? all.query(h, i)[c] : all.key(h, i, c);
    before[i] = number;
    after[i] = number += increments[i];
    others[i] = (of_queries ? all.key(h, i, c) : all.query(h, i)[c]) * all.scale;
  }
  (of_queries ? longest_query : longest_key) += largest_size(increments);
  if (!finite(all, after) || !allow_drift(before, after, largest_size(increments))) return false;
  if (all.uniform) {
    change.heads[h].all = false;
    return true;
  }
  std::atomic<bool> all_finite{true};
  for_blocks(all, threads, [&](size_t first, size_t end) {
    const std::vector<double>&row_parts = of_queries ? increments : others,
          &key_parts = of_queries ? others : increments;
    if (!update_scores(all, h, first, end, row_parts.data(), key_parts.data())) all_finite = false;
  });
  return all_finite;
}

bool Engine::Parts::update_value(const Difference& d, const std::vector<double>& increments) {
  const size_t h = d.column / all.d_head, c = d.column % all.d_head;
  std::vector<double> before(all.n_tokens), after(all.n_tokens);
  for (size_t j = 0; j < all.n_tokens; ++j) {
    before[j] = all.value(h, j)[c];
    after[j] = all.value(h, j)[c] += increments[j];
  }
  if (!finite(all, after) || !allow_drift(before, after, largest_size(increments))) return false;
  for_blocks(all, threads, [&](size_t first, size_t end) {
    if (all.kept.bits.empty())
      update_context_column(all, h, first, end, c, after.data());
    else
      work_out(all, h, first, end, From::weights);
  });
  return true;
}

bool Engine::Parts::update_mask(const Model& after, const Difference& d, Change& change) {
  all.visibility = Visibility(after, sequence);
  change.heads.assign(all.heads.size(), HeadChange{false, d.mask_rows, std::nullopt, d.mask_rows.front()});
  std::atomic<bool> all_finite{true};
  threads.run(all.heads.size(), [&](size_t h) {
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
