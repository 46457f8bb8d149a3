#include "app/render/picture.hpp"

#include <algorithm>
#include <cmath>

namespace app::render {
namespace {

using core::colour::Blocks;

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

}  // namespace

Shades::Shades(const Picture& p)
    : shading_{p.map, p.low, p.high, p.least, p.dots},
      colours_(p.map, p.dark),
      zero_(colours_(place_in_range(p.map, p.low, p.high, 0))),
      hidden_zero_(marked(0, true, false)) {
  const double first = place_in_range(p.map, p.low, p.high, p.low),
               last = place_in_range(p.map, p.low, p.high, p.high);
  const double slope = (last - first) / (p.high - p.low);
  if (p.least > 0 || !(slope > 0) || std::isinf(slope)) return;
  low_ = p.low, high_ = p.high, place_ = first, slope_ = slope;
}

Texel Shades::marked(double number, bool hidden, bool dropped) const {
  const auto [place, marks] = core::colour::look(shading_, number, hidden, dropped);
  const Rgb colour = (marks & mark::dropped) != 0 ? zero_ : colours_(place);
  const bool is_light = marks != 0 && readable_on(colour) == readable_on(rgb(0x000000));
  return {colour, static_cast<std::uint8_t>(marks | (is_light ? light_ink : 0))};
}

std::vector<double> block_flags(const arma::mat& flags, Pooling block) {
  const auto all = [](std::size_t cells, std::size_t size) {
    return Blocks{0, (cells + size - 1) / size, size};
  };
  return core::colour::strongest(ColourMap::mask, flags, all(flags.n_rows, block.rows),
                                 all(flags.n_cols, block.columns));
}

Pooling pooling(const Picture& p) {
  return {cells_a_pixel(p.bottom - p.top, p.height), cells_a_pixel(p.right - p.left, p.width)};
}

bool has_rows(const Picture& p) {
  return p.rows.numbers && p.width > 0 && p.height > 0 && p.left == 0 && p.top == 0 &&
         p.right == static_cast<double>(p.rows.n_columns) && p.bottom == static_cast<double>(p.rows.n_rows);
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

  const std::vector<double> numbers = core::colour::strongest(p.map, *p.numbers, rows, columns);
  // A flag is 0 or 1: the largest of a block is 0 only when every cell is 0.
  const auto flags = [&](const arma::mat* m) {
    return m ? core::colour::strongest(ColourMap::mask, *m, rows, columns) : std::vector<double>{};
  };
  const std::vector<double> visible = flags(p.visible), kept = flags(p.kept);
  const Shades shades(p);
  t.data.resize(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool hidden = !visible.empty() && visible[i] == 0, dropped = !kept.empty() && kept[i] == 0;
    t.data[i] = shades(numbers[i], hidden, dropped);
  }
  return t;
}

}  // namespace app::render
