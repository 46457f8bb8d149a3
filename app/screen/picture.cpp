#include "app/screen/picture.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace app::render {
namespace {

using core::color::Blocks;

std::size_t cells_a_pixel(double cells, int pixels) {
  if (!(cells > 0) || pixels <= 0) return 1;
  return std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(cells / pixels)));
}

/// The blocks of a matrix's rows or columns that the span from … to touches.
Blocks touched(double from, double to, std::size_t cells, std::size_t block) {
  const auto size = static_cast<double>(block);
  const auto count = static_cast<double>((cells + block - 1) / block);
  const auto begin = static_cast<std::size_t>(std::clamp(std::floor(from / size), 0.0, count));
  return {begin, std::max(begin, static_cast<std::size_t>(std::clamp(std::ceil(to / size), 0.0, count))),
          block};
}

/// Whether any cell of each block is not 0, a row of blocks after the other; most blocks are known by their
/// first cell.
std::vector<double> any_of_blocks(const arma::mat& flags, Blocks rows, Blocks columns) {
  const std::size_t n_rows = rows.end - rows.begin, n_columns = columns.end - columns.begin;
  std::vector<double> result(n_rows * n_columns);
  const auto end_of = [](std::size_t block, const Blocks& of, std::size_t cells) {
    return std::min((block + 1) * of.size, cells);
  };
  for (std::size_t c = 0; c < n_columns; ++c)
    for (std::size_t r = 0; r < n_rows; ++r) {
      const std::size_t top = (rows.begin + r) * rows.size, left = (columns.begin + c) * columns.size;
      const std::size_t bottom = end_of(rows.begin + r, rows, flags.n_rows);
      const std::size_t right = end_of(columns.begin + c, columns, flags.n_cols);
      bool any = false;
      for (std::size_t j = left; j < right && !any; ++j) {
        const double* const column = flags.colptr(j);
        any = std::any_of(column + top, column + bottom, [](double flag) { return flag != 0; });
      }
      result[r * n_columns + c] = any ? 1 : 0;
    }
  return result;
}

}  // namespace

Shades::Shades(const Picture& p)
    : shading_{p.map, p.low, p.high, p.least, p.dots},
      colors_(p.map, p.dark),
      zero_(std::bit_cast<Texel>(colors_(place_in_range(p.map, p.low, p.high, 0))).color),
      hidden_zero_(marked(0, true, false)) {
  const double first = place_in_range(p.map, p.low, p.high, p.low),
               last = place_in_range(p.map, p.low, p.high, p.high);
  const double slope = (last - first) / (p.high - p.low);
  if (p.least > 0 || !(slope > 0) || std::isinf(slope)) return;
  low_ = p.low, high_ = p.high, place_ = first, slope_ = slope;
}

Texel Shades::marked(double number, bool hidden, bool dropped) const {
  auto [place, marks] = core::color::look(shading_, number, hidden, dropped);
  if (dropped && (marks & mark::hidden) != 0) marks |= mark::dropped;
  const Rgb color = (marks & mark::dropped) != 0 ? zero_ : std::bit_cast<Texel>(colors_(place)).color;
  const bool is_light = marks != 0 && readable_on(color) == readable_on(rgb(0x000000));
  return {color, static_cast<std::uint8_t>(marks | (is_light ? light_ink : 0))};
}

std::vector<double> block_flags(const arma::mat& flags, Pooling block) {
  const auto all = [](std::size_t cells, std::size_t size) {
    return Blocks{0, (cells + size - 1) / size, size};
  };
  return any_of_blocks(flags, all(flags.n_rows, block.rows), all(flags.n_cols, block.columns));
}

Pooling pooling(const Picture& p) {
  return {cells_a_pixel(p.part.bottom - p.part.top, p.height),
          cells_a_pixel(p.part.right - p.part.left, p.width)};
}

bool has_rows(const Picture& p) {
  return p.cells.rows.numbers && p.width > 0 && p.height > 0 && p.part.left == 0 && p.part.top == 0 &&
         p.part.right == static_cast<double>(p.cells.rows.n_cols) &&
         p.part.bottom == static_cast<double>(p.cells.rows.n_rows);
}

Placing placing(const Picture& p, const Texels& t) {
  const auto block_rows = static_cast<double>(t.pooling.rows),
             block_columns = static_cast<double>(t.pooling.columns);
  return {p.part.left / block_columns - static_cast<double>(t.first_column),
          p.part.top / block_rows - static_cast<double>(t.first_row),
          (p.part.right - p.part.left) / block_columns, (p.part.bottom - p.part.top) / block_rows};
}

MatrixTexels::MatrixTexels(const Picture& p) {
  Texels t;
  if (!p.cells.numbers || p.cells.numbers->is_empty() || p.width <= 0 || p.height <= 0) return;
  if (!(p.part.right > p.part.left) || !(p.part.bottom > p.part.top)) return;
  t.pooling = pooling(p);
  rows_ = touched(p.part.top, p.part.bottom, p.cells.numbers->n_rows, t.pooling.rows);
  columns_ = touched(p.part.left, p.part.right, p.cells.numbers->n_cols, t.pooling.columns);
  t.rows = rows_.end - rows_.begin, t.columns = columns_.end - columns_.begin;
  if (t.rows == 0 || t.columns == 0) return;
  t.first_row = rows_.begin, t.first_column = columns_.begin;
  t.data.resize(t.rows * t.columns);
  texels_ = std::move(t);
}

bool MatrixTexels::advance(const Picture& p, double cells, core::ThreadPool& threads) {
  constexpr std::size_t columns_a_task = 16;
  const double cells_a_column = static_cast<double>(texels_.rows * rows_.size * columns_.size);
  const auto left = static_cast<double>(texels_.columns - made_);
  const auto count =
      static_cast<std::size_t>(std::clamp(cells / std::max(1.0, cells_a_column), std::min(1.0, left), left));
  const std::size_t end = made_ + count;
  const Shades shades(p);
  threads.run((count + columns_a_task - 1) / columns_a_task, [&](std::size_t task) {
    const std::size_t first = made_ + task * columns_a_task;
    make(p, shades, first, std::min(first + columns_a_task, end));
  });
  made_ = end;
  return made_ == texels_.columns;
}

void MatrixTexels::make(const Picture& p, const Shades& shades, std::size_t first, std::size_t last) {
  const Blocks columns{columns_.begin + first, columns_.begin + last, columns_.size};
  const std::vector<double> numbers = core::color::pooled(p.map, *p.cells.numbers, rows_, columns);
  const auto flags = [&](const arma::mat* m) {
    return m ? any_of_blocks(*m, rows_, columns) : std::vector<double>{};
  };
  const std::vector<double> visible = flags(p.cells.visible), kept = flags(p.cells.kept);
  const std::size_t count = last - first;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool hidden = !visible.empty() && visible[i] == 0, dropped = !kept.empty() && kept[i] == 0;
    texels_.data[i / count * texels_.columns + first + i % count] = shades(numbers[i], hidden, dropped);
  }
}

}  // namespace app::render
