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
  const double* numbers = m.numbers + row * m.stride;
  double* along = along_.data() + row * n_columns_;
  for (std::size_t c = first; c < last; ++c) {
    const std::size_t begin = c * form_.block_columns, end = std::min(begin + form_.block_columns, m.n_cols);
    double best = numbers[begin];
    for (std::size_t j = begin + 1; j < end; ++j) best = stronger<is_signed>(best, numbers[j]);
    along[c] = best;
  }
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
