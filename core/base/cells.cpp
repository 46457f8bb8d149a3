#include "core/base/cells.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/stronger.hpp"

namespace core::colour {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <bool is_signed>
std::vector<double> strongest_of(const arma::mat& m, Blocks rows, Blocks columns) {
  const std::size_t n_rows = rows.end - rows.begin, n_columns = columns.end - columns.begin;
  const std::size_t first = rows.begin * rows.size,
                    last = std::min<std::size_t>(rows.end * rows.size, m.n_rows);
  std::vector<double> result(n_rows * n_columns), column(last - first);
  for (std::size_t c = 0; c < n_columns; ++c) {
    const std::size_t begin = (columns.begin + c) * columns.size;
    const std::size_t end = std::min<std::size_t>(begin + columns.size, m.n_cols);
    std::copy_n(m.colptr(begin) + first, column.size(), column.begin());
    for (std::size_t j = begin + 1; j < end; ++j) {
      const double* numbers = m.colptr(j) + first;
      for (std::size_t i = 0; i < column.size(); ++i) column[i] = stronger<is_signed>(column[i], numbers[i]);
    }
    for (std::size_t r = 0; r < n_rows; ++r) {
      const std::size_t top = r * rows.size, bottom = std::min(top + rows.size, column.size());
      double best = column[top];
      for (std::size_t i = top + 1; i < bottom; ++i) best = stronger<is_signed>(best, column[i]);
      result[r * n_columns + c] = best;
    }
  }
  return result;
}

std::vector<double> means_of(const arma::mat& m, Blocks rows, Blocks columns) {
  std::vector<double> result;
  for (std::size_t r = rows.begin; r < rows.end; ++r)
    for (std::size_t c = columns.begin; c < columns.end; ++c) {
      const std::size_t top = r * rows.size, bottom = std::min<std::size_t>(top + rows.size, m.n_rows);
      const std::size_t left = c * columns.size, right = std::min<std::size_t>(left + columns.size, m.n_cols);
      double sum = 0;
      for (std::size_t j = left; j < right; ++j)
        sum = std::accumulate(m.colptr(j) + top, m.colptr(j) + bottom, sum);
      result.push_back(sum / static_cast<double>((bottom - top) * (right - left)));
    }
  return result;
}

}  // namespace

CellLook look(const Shading& s, double number, bool hidden, bool dropped) {
  if (std::isnan(number)) return {0, mark::not_a_number};
  if (number == -infinity) return {0, mark::minus_infinity};
  // A number other than 0 counts, whatever the mask says of its cell.
  unsigned marks = hidden && number == 0 ? mark::hidden : dropped ? mark::dropped : 0;
  if (number > s.high) marks |= mark::above;
  if (number < s.low || (number != 0 && std::abs(number) < s.least)) marks |= mark::below;
  if (s.dots && number == 0 && marks == 0) marks |= mark::zero;
  if (number == infinity) marks |= mark::hidden;
  return {place_in_range(s.map, s.low, s.high, number, s.least), marks};
}

std::vector<double> pooled(ColourMap map, const arma::mat& numbers, Blocks rows, Blocks columns) {
  if (map == ColourMap::mask) return means_of(numbers, rows, columns);
  return is_diverging(map) ? strongest_of<true>(numbers, rows, columns)
                           : strongest_of<false>(numbers, rows, columns);
}

const char* pooled_as(ColourMap map) {
  return map == ColourMap::mask ? "mean" : is_diverging(map) ? "number farthest from 0" : "largest";
}

}  // namespace core::colour
