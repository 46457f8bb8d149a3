#include "app/render/pool.hpp"

#include <algorithm>
#include <cmath>

#include "core/colour/stronger.hpp"

namespace app::render {
namespace {

using core::colour::stronger;

std::size_t blocks(std::size_t cells, std::size_t block) {
  return (cells + block - 1) / block;
}

/// The blocks of rows that a change touches in full, in order.
std::vector<bool> touched_rows(const CellChange& change, std::size_t n_blocks, std::size_t block) {
  std::vector<bool> touched(n_blocks, change.all);
  for (const std::size_t row : change.rows) touched.at(row / block) = true;
  for (std::size_t r = std::min(change.first_sum, n_blocks * block) / block; r < n_blocks; ++r)
    touched[r] = true;
  return touched;
}

std::vector<std::pair<std::size_t, std::size_t>> runs(const std::vector<bool>& set) {
  std::vector<std::pair<std::size_t, std::size_t>> found;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (!set[i]) continue;
    if (!found.empty() && found.back().second == i)
      ++found.back().second;
    else
      found.emplace_back(i, i + 1);
  }
  return found;
}

}  // namespace

Pool::Written Pool::renew(const RowNumbers& m, bool is_signed, std::size_t block_rows,
                          std::size_t block_columns, const CellChange& change) {
  const Form form{m.n_rows, m.n_columns, block_rows, block_columns, is_signed, m.sums != nullptr};
  const CellChange everything;
  const bool known = form == form_;
  if (!known) {
    form_ = form;
    n_rows_ = blocks(m.n_rows, block_rows), n_columns_ = blocks(m.n_columns, block_columns);
    along_.resize(m.n_rows * n_columns_);
    strongest_.resize(n_rows_ * n_columns_);
  }
  const CellChange& now = known ? change : everything;
  return is_signed ? renew_as<true>(m, now) : renew_as<false>(m, now);
}

template <bool is_signed>
void Pool::pool_along(const RowNumbers& m, std::size_t row, std::size_t first, std::size_t last) {
  const double* numbers = m.numbers + row * m.stride;
  double* along = along_.data() + row * n_columns_;
  for (std::size_t c = first; c < last; ++c) {
    const std::size_t begin = c * form_.block_columns,
                      end = std::min(begin + form_.block_columns, m.n_columns);
    double best = numbers[begin];
    for (std::size_t j = begin + 1; j < end; ++j) best = stronger<is_signed>(best, numbers[j]);
    along[c] = best;
  }
}

template <bool is_signed>
void Pool::pool_down(const RowNumbers& m, std::size_t block_row, std::size_t first, std::size_t last) {
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
Pool::Written Pool::renew_as(const RowNumbers& m, const CellChange& change) {
  const std::vector<bool> touched = touched_rows(change, n_rows_, form_.block_rows);
  if (change.all)
    for (std::size_t i = 0; i < m.n_rows; ++i) pool_along<is_signed>(m, i, 0, n_columns_);
  else
    for (const std::size_t i : change.rows) pool_along<is_signed>(m, i, 0, n_columns_);
  Written written{runs(touched), std::nullopt};
  if (!change.all && change.column) {
    const std::size_t c = *change.column / form_.block_columns;
    written.column = c;
    for (std::size_t i = 0; i < m.n_rows; ++i) pool_along<is_signed>(m, i, c, c + 1);
    for (std::size_t r = 0; r < n_rows_; ++r)
      if (!touched[r]) pool_down<is_signed>(m, r, c, c + 1);
  }
  for (std::size_t r = 0; r < n_rows_; ++r)
    if (touched[r]) pool_down<is_signed>(m, r, 0, n_columns_);
  return written;
}

}  // namespace app::render
