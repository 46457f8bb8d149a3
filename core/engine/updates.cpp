#include "core/engine/updates.hpp"

#include <algorithm>

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
    if (all.adjusting.any())
      score = (all.adjusting.caps() ? all.adjusting.capped(score) : score) + all.adjusting.bias(h, i, t);
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
  Scratch::Borrowed exponentials(all.rows, all.n_keys);
  for (std::size_t i = first; i < end; ++i) {
    const std::size_t from = all.visibility.firsts()[i], n = all.visibility.ends()[i] - from;
    if (n == 0) continue;
    row_of_exponentials(all, h, i, n, exponentials.data(), from);
    all.context(h, i)[c] = all.kernels->dot(exponentials.data(), values + from, n) / all.heads[h].sums[i];
  }
}

}  // namespace core::attention::fast
