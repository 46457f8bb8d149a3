#include "app/render/picture.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace app::render {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::size_t cells_a_pixel(double cells, int pixels) {
  if (!(cells > 0) || pixels <= 0) return 1;
  return std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(cells / pixels)));
}

/// Blocks begin … end of a matrix's rows or columns that the span from … to touches.
struct Blocks {
  std::size_t begin = 0, end = 0;
};

Blocks touched(double from, double to, std::size_t cells, std::size_t block) {
  const auto size = static_cast<double>(block);
  const auto count = static_cast<double>((cells + block - 1) / block);
  const auto begin = static_cast<std::size_t>(std::clamp(std::floor(from / size), 0.0, count));
  return {begin, std::max(begin, static_cast<std::size_t>(std::clamp(std::ceil(to / size), 0.0, count)))};
}

/// The one to show of two numbers of a block; a NaN wins and stays, −∞ loses.
///
/// All comparisons are made, whatever the first ones say: so the compiler can do several numbers at once.
template <ColourMap map>
double stronger(double a, double b) {
  bool keep = a >= b;
  if constexpr (is_diverging(map)) {
    keep = ((std::abs(a) >= std::abs(b)) & (a != -infinity)) | (b == -infinity);
  }
  return keep | (a != a) ? a : b;
}

/// The strongest number of each block, a row after the other.
template <ColourMap map>
std::vector<double> strongest(const arma::mat& m, Blocks rows, Blocks columns, Pooling block) {
  const std::size_t n_rows = rows.end - rows.begin, n_columns = columns.end - columns.begin;
  const std::size_t first = rows.begin * block.rows,
                    last = std::min<std::size_t>(rows.end * block.rows, m.n_rows);
  std::vector<double> result(n_rows * n_columns), column(last - first);
  for (std::size_t c = 0; c < n_columns; ++c) {
    const std::size_t begin = (columns.begin + c) * block.columns;
    const std::size_t end = std::min<std::size_t>(begin + block.columns, m.n_cols);
    std::copy_n(m.colptr(begin) + first, column.size(), column.begin());
    for (std::size_t j = begin + 1; j < end; ++j) {
      const double* numbers = m.colptr(j) + first;
      for (std::size_t i = 0; i < column.size(); ++i) column[i] = stronger<map>(column[i], numbers[i]);
    }
    for (std::size_t r = 0; r < n_rows; ++r) {
      const std::size_t top = r * block.rows, bottom = std::min(top + block.rows, column.size());
      double best = column[top];
      for (std::size_t i = top + 1; i < bottom; ++i) best = stronger<map>(best, column[i]);
      result[r * n_columns + c] = best;
    }
  }
  return result;
}

std::vector<double> strongest(const Picture& p, const arma::mat& m, Blocks rows, Blocks columns,
                              Pooling block) {
  if (is_diverging(p.map)) return strongest<ColourMap::values>(m, rows, columns, block);
  return strongest<ColourMap::weights>(m, rows, columns, block);
}

Texel texel(const Picture& p, double number, bool hidden, bool dropped) {
  if (std::isnan(number)) return {0, mark::not_a_number};
  if (number == -infinity) return {0, mark::minus_infinity};
  unsigned marks = hidden ? mark::hidden : dropped ? mark::dropped : 0;
  if (number > p.high) marks |= mark::above;
  if (number < p.low || (number != 0 && std::abs(number) < p.least)) marks |= mark::below;
  if (p.dots && number == 0 && marks == 0) marks |= mark::zero;
  // Beyond the range like any number that is clipped, but hatched as well.
  if (number == infinity) marks |= mark::hidden;
  return {static_cast<float>(place_in_range(p.map, p.low, p.high, number, p.least)), static_cast<float>(marks)};
}

}  // namespace

Pooling pooling(const Picture& p) {
  return {cells_a_pixel(p.bottom - p.top, p.height), cells_a_pixel(p.right - p.left, p.width)};
}

Texels texels(const Picture& p) {
  Texels t;
  if (!p.numbers || p.numbers->is_empty() || p.width <= 0 || p.height <= 0) return t;
  if (!(p.right > p.left) || !(p.bottom > p.top)) return t;
  t.pooling = pooling(p);
  const Blocks rows = touched(p.top, p.bottom, p.numbers->n_rows, t.pooling.rows);
  const Blocks columns = touched(p.left, p.right, p.numbers->n_cols, t.pooling.columns);
  t.rows = rows.end - rows.begin, t.columns = columns.end - columns.begin;
  if (t.rows == 0 || t.columns == 0) return Texels{};
  t.first_row = rows.begin, t.first_column = columns.begin;
  const auto block_rows = static_cast<double>(t.pooling.rows),
             block_columns = static_cast<double>(t.pooling.columns);
  t.left = p.left / block_columns - static_cast<double>(columns.begin);
  t.top = p.top / block_rows - static_cast<double>(rows.begin);
  t.across = (p.right - p.left) / block_columns, t.down = (p.bottom - p.top) / block_rows;

  const std::vector<double> numbers = strongest(p, *p.numbers, rows, columns, t.pooling);
  // A flag is 0 or 1: the largest of a block is 0 only when every cell is 0.
  const auto flags = [&](const arma::mat* m) {
    return m ? strongest<ColourMap::mask>(*m, rows, columns, t.pooling) : std::vector<double>{};
  };
  const std::vector<double> visible = flags(p.visible), kept = flags(p.kept);
  t.data.resize(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool hidden = !visible.empty() && visible[i] == 0, dropped = !kept.empty() && kept[i] == 0;
    t.data[i] = texel(p, numbers[i], hidden, dropped);
  }
  return t;
}

}  // namespace app::render
