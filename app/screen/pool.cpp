#include "app/screen/pool.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/color.hpp"

namespace app::render {
namespace {

using core::color::stronger;

std::size_t blocks(std::size_t cells, std::size_t block) {
  return (cells + block - 1) / block;
}

/// The strongest of every block of a line: all blocks' first numbers, then their second ones and so on, as
/// gcc compares vectors of blocks then, and one number after the other where the best of a block is carried.
template <bool is_signed, std::size_t fixed_block>
[[gnu::always_inline]] inline void strongest_along(const double* __restrict line, std::size_t n,
                                                   std::size_t block, double* __restrict out) {
  if constexpr (fixed_block > 0) block = fixed_block;
  const std::size_t whole = n / block;
  for (std::size_t c = 0; c < whole; ++c) out[c] = line[c * block];
  for (std::size_t k = 1; k < block; ++k)
    for (std::size_t c = 0; c < whole; ++c) out[c] = stronger<is_signed>(out[c], line[c * block + k]);
  if (whole * block == n) return;
  double best = line[whole * block];
  for (std::size_t i = whole * block + 1; i < n; ++i) best = stronger<is_signed>(best, line[i]);
  out[whole] = best;
}

template <bool is_signed>
[[gnu::always_inline]] inline void strongest_of_blocks(const double* line, std::size_t n, std::size_t block,
                                                       double* out) {
  switch (block) {
    case 1:
      std::copy_n(line, n, out);
      return;
    case 2:
      return strongest_along<is_signed, 2>(line, n, block, out);
    case 3:
      return strongest_along<is_signed, 3>(line, n, block, out);
    case 4:
      return strongest_along<is_signed, 4>(line, n, block, out);
    default:
      return strongest_along<is_signed, 0>(line, n, block, out);
  }
}

// For the vectors of each processor; no other floating-point options, as NaN and −∞ count.
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
FOR_EACH_PROCESSOR void largest_of_blocks(const double* line, std::size_t n, std::size_t block, double* out) {
  strongest_of_blocks<false>(line, n, block, out);
}
FOR_EACH_PROCESSOR void farthest_of_blocks(const double* line, std::size_t n, std::size_t block,
                                           double* out) {
  strongest_of_blocks<true>(line, n, block, out);
}

/// The blocks of rows that a change touches in full, in order.
std::vector<bool> touched_rows(const HeadChange& change, std::size_t n_blocks, std::size_t block) {
  std::vector<bool> touched(n_blocks, change.all);
  for (const std::size_t row : change.rows) touched.at(row / block) = true;
  for (std::size_t r = std::min(change.first_sum, n_blocks * block) / block; r < n_blocks; ++r)
    touched[r] = true;
  return touched;
}

}  // namespace

void Pool::begin(const RowView& m, bool is_signed, std::size_t block_rows, std::size_t block_columns) {
  form_ = form(m, is_signed, block_rows, block_columns);
  n_rows_ = blocks(m.n_rows, block_rows), n_columns_ = blocks(m.n_cols, block_columns);
  along_.resize(m.n_rows * n_columns_);
  strongest_.resize(n_rows_ * n_columns_);
}

Pool::Written Pool::renew(const RowView& m, bool is_signed, std::size_t block_rows, std::size_t block_columns,
                          const HeadChange& change, core::ThreadPool& threads) {
  const HeadChange everything;
  const bool known = fits(m, is_signed, block_rows, block_columns);
  if (!known) begin(m, is_signed, block_rows, block_columns);
  const HeadChange& now = known ? change : everything;
  return is_signed ? renew_as<true>(m, now, threads) : renew_as<false>(m, now, threads);
}

template <bool is_signed>
void Pool::pool_along(const RowView& m, std::size_t row, std::size_t first, std::size_t last) {
  const std::size_t begin = first * form_.block_columns, end = std::min(last * form_.block_columns, m.n_cols);
  (is_signed ? farthest_of_blocks : largest_of_blocks)(m.numbers + row * m.stride + begin, end - begin,
                                                       form_.block_columns,
                                                       along_.data() + row * n_columns_ + first);
}

template <bool is_signed>
void Pool::pool_down(const RowView& m, std::size_t block_row, std::size_t first, std::size_t last) {
  const std::size_t begin = block_row * form_.block_rows, end = std::min(begin + form_.block_rows, m.n_rows);
  double* best = strongest_.data() + block_row * n_columns_;
  for (std::size_t i = begin; i < end; ++i) {
    const double* along = along_.data() + i * n_columns_;
    // The largest weight is that of the largest logarithm: so few exponentials are needed.
    const double shift = m.sums ? m.largest[i] + std::log(m.sums[i]) : 0;
    if (i == begin)
      for (std::size_t c = first; c < last; ++c) best[c] = along[c] - shift;
    else
      for (std::size_t c = first; c < last; ++c) best[c] = stronger<is_signed>(best[c], along[c] - shift);
  }
  if (m.sums) m.exponentials(best + first, last - first);
}

template <bool is_signed>
Pool::Written Pool::renew_as(const RowView& m, const HeadChange& change, core::ThreadPool& threads) {
  constexpr std::size_t blocks_a_task = 16;
  Written written{touched_rows(change, n_rows_, form_.block_rows), std::nullopt};
  if (!change.all && change.column) written.column = *change.column / form_.block_columns;
  std::vector<bool> anew(m.n_rows, change.all);
  for (const std::size_t row : change.rows) anew.at(row) = true;

  const auto renew_block = [&](std::size_t r) {
    const std::size_t begin = r * form_.block_rows, end = std::min(begin + form_.block_rows, m.n_rows);
    for (std::size_t i = begin; i < end; ++i) {
      if (anew[i])
        pool_along<is_signed>(m, i, 0, n_columns_);
      else if (written.column)
        pool_along<is_signed>(m, i, *written.column, *written.column + 1);
    }
    if (written.rows[r])
      pool_down<is_signed>(m, r, 0, n_columns_);
    else if (written.column)
      pool_down<is_signed>(m, r, *written.column, *written.column + 1);
  };
  threads.run(blocks(n_rows_, blocks_a_task), [&](std::size_t task) {
    const std::size_t last = std::min((task + 1) * blocks_a_task, n_rows_);
    for (std::size_t r = task * blocks_a_task; r < last; ++r) renew_block(r);
  });
  return written;
}

}  // namespace app::render
