#include "core/out/map_figure.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/base/bar.hpp"
#include "core/base/cell_text.hpp"
#include "core/out/append.hpp"
#include "core/out/grid.hpp"
#include "core/out/words.hpp"

namespace core::figures {
namespace {

using colour::Palette;

constexpr double title_height = 26, index_size = 12, row_size = 13, column_size = 12;
constexpr double widest_row_name = 130, longest_column_name = 96, bar_gap = 10;
constexpr std::size_t most_boxes = 1024, most_boxes_of_several = 400;

/// How large a cell is drawn beside so many others; pixels are whole.
double pitch(std::size_t count, Room room, bool tall) {
  struct Step {
    std::size_t count;
    double wide, high;
  };
  constexpr Step one[]{{8, 56, 34}, {12, 48, 30}, {16, 42, 26}, {24, 34, 22}, {32, 20, 20}};
  constexpr Step several[]{{8, 48, 27}, {12, 38, 24}, {16, 34, 22}, {24, 16, 16}};
  const std::span<const Step> steps = room == Room::one_map ? std::span<const Step>(one) : several;
  for (const Step& step : steps)
    if (count <= step.count) return tall ? step.high : step.wide;
  const double side = room == Room::one_map ? 640 : 380;
  return std::max(1.0, std::floor(side / static_cast<double>(count)));
}

std::size_t block(std::size_t count, Room room) {
  const std::size_t most = room == Room::one_map ? 640 : 380;
  return (count + most - 1) / most;
}

/// Whether any of each block is not 0.
std::vector<double> flags(const arma::mat* m, colour::Blocks rows, colour::Blocks columns) {
  return m ? colour::pooled(colour::ColourMap::weights, *m, rows, columns) : std::vector<double>{};
}

Grid grid_of(const Map& map) {
  const arma::mat& numbers = map.matrix.numbers;
  Grid g;
  g.block_rows = block(numbers.n_rows, map.room), g.block_columns = block(numbers.n_cols, map.room);
  g.rows = (numbers.n_rows + g.block_rows - 1) / g.block_rows;
  g.columns = (numbers.n_cols + g.block_columns - 1) / g.block_columns;
  g.cell_width = pitch(g.columns, map.room, false), g.cell_height = pitch(g.rows, map.room, true);
  if (map.tokens_above && g.columns > 24)
    g.cell_width = g.cell_height = std::min(g.cell_width, g.cell_height);
  const std::size_t boxes = map.room == Room::one_map ? most_boxes : most_boxes_of_several;
  g.separate = g.cell_width >= 8 && g.cell_height >= 8 && g.rows * g.columns <= boxes;
  g.picture = {0, 0, static_cast<double>(g.columns) * g.cell_width,
               static_cast<double>(g.rows) * g.cell_height};
  const colour::Blocks rows{0, g.rows, g.block_rows}, columns{0, g.columns, g.block_columns};
  const std::vector<double> shown = colour::pooled(map.shading.map, numbers, rows, columns);
  const std::vector<double> visible = flags(map.visible, rows, columns),
                            kept = flags(map.kept, rows, columns);
  for (std::size_t k = 0; k < shown.size(); ++k)
    g.looks.push_back(colour::look(map.shading, shown[k], !visible.empty() && visible[k] == 0,
                                   !kept.empty() && kept[k] == 0));
  return g;
}

void add_text(DisplayList& list, Point at, Anchor anchor, const std::string& words, double size, Rgb ink,
              bool mono = false) {
  list.items.emplace_back(Text{at, anchor, {{words, size, ink, mono}}});
}

/// What stands around the cells, from which their place follows.
struct Labels {
  std::vector<std::string> rows, columns;  ///< as drawn
  double row_room = 0, index_room = 0, column_room = 0;
  bool turned = false;  ///< the columns' names
};

Labels labels_of(const Map& map, const Grid& g) {
  Labels labels;
  const double column_pitch = g.cell_width * static_cast<double>(label_step(g.cell_width, 14));
  double widest = 0, longest = 0;
  // Names that only repeat the indices are left out.
  const bool named_rows = map.matrix.row_labels != attention::numbered_tokens(map.matrix.numbers.n_rows);
  const bool named_columns =
      map.matrix.column_labels != attention::numbered_tokens(map.matrix.numbers.n_cols);
  for (std::size_t i = 0; named_rows && i < map.matrix.row_labels.size(); ++i) {
    const std::string& name = map.matrix.row_labels[i];
    labels.rows.push_back(shortened(drawable(name), row_size, widest_row_name));
    widest = std::max(widest, text_width(labels.rows.back(), row_size));
  }
  labels.index_room = text_width(std::to_string(map.matrix.numbers.n_rows - 1), index_size, true);
  labels.row_room = std::ceil((named_rows ? widest + 5 : 0) + labels.index_room + 6);
  labels.column_room = 18;
  if (!map.tokens_above || !named_columns) return labels;
  for (const std::string& name : map.matrix.column_labels) {
    labels.columns.push_back(drawable(name));
    longest = std::max(longest, text_width(labels.columns.back(), column_size));
  }
  labels.turned = longest + 6 > column_pitch;
  if (labels.turned) {
    for (std::string& name : labels.columns) name = shortened(name, column_size, longest_column_name);
    labels.column_room += std::min(longest, longest_column_name) + 6;
  } else {
    labels.column_room += 16;
  }
  return labels;
}

void draw_rows(DisplayList& list, const Map& map, const Grid& g, const Labels& labels, const Palette& p) {
  const double cell = g.cell_height / static_cast<double>(g.block_rows), right = g.picture.x - 6;
  const std::size_t step = label_step(cell, 15);
  for (std::size_t i = 0; i < map.matrix.numbers.n_rows; i += step) {
    const double middle = g.picture.y + (static_cast<double>(i) + 0.5) * cell;
    add_text(list, {right, middle + 0.36 * index_size}, Anchor::end, std::to_string(i), index_size, p.faint,
             true);
    if (labels.rows.empty()) continue;
    add_text(list, {right - labels.index_room - 5, middle + 0.36 * row_size}, Anchor::end, labels.rows[i],
             row_size, p.dim);
  }
}

void draw_columns(DisplayList& list, const Map& map, const Grid& g, const Labels& labels, const Palette& p) {
  const double cell = g.cell_width / static_cast<double>(g.block_columns), base = g.picture.y - 6;
  const std::size_t count = map.matrix.numbers.n_cols;
  const double index = text_width(std::to_string(count - 1), index_size, true) + 6;
  const std::size_t step = label_step(cell, labels.turned ? std::max(14.0, index) : index);
  for (std::size_t j = 0; j < count; j += step) {
    const double middle = g.picture.x + (static_cast<double>(j) + 0.5) * cell;
    add_text(list, {middle, base}, Anchor::middle, std::to_string(j), index_size, p.faint, true);
    if (labels.columns.empty()) continue;
    if (labels.turned)
      list.items.emplace_back(Text{{middle + 0.36 * column_size, base - 16},
                                   Anchor::start,
                                   {{labels.columns[j], column_size, p.dim}},
                                   true});
    else
      add_text(list, {middle, base - 15}, Anchor::middle, labels.columns[j], column_size, p.dim);
  }
}

void add_bar(MapFigure& figure, const Map& map, const Palette& palette) {
  double smallest = map.shading.high, largest = map.shading.low;
  for (const double v : map.matrix.numbers)
    if (std::isfinite(v)) smallest = std::min(smallest, v), largest = std::max(largest, v);
  const Area& p = figure.picture;
  const DisplayList bar = bar_figure(map.shading, smallest, largest, std::max(p.width - 1, 64.0), palette);
  append(figure.list, bar, {p.x, p.y + p.height + bar_gap});
  figure.list.height += bar_gap + bar.height;
  figure.list.width = std::max(figure.list.width, p.x + bar.width);
}

Rgb colour_on_bar(const colour::Shading& s, double share, const Palette& palette) {
  const double number = colour::number_on_bar(s, share);
  return colour::colour_at(s.map, palette.dark,
                           colour::place_in_range(s.map, s.low, s.high, number, s.least));
}

}  // namespace

DisplayList bar_figure(const colour::Shading& shading, double smallest, double largest, double width,
                       const Palette& palette) {
  const std::size_t steps =
      shading.map == colour::ColourMap::mask ? 2 : 64;  // a mask has no numbers in between
  constexpr double thick = 6, mark = 3, room = 5;
  DisplayList bar;
  const std::string low_end = end_text(colour::number_on_bar(shading, 0), true),
                    high_end = end_text(colour::number_on_bar(shading, 1), true);
  const double left = text_width(low_end, index_size, true) + room,
               right = text_width(high_end, index_size, true) + room;
  const double length = std::max(64.0, std::floor(width - left - right));
  Image colours{{left, 0, length, thick}, 1, steps, {}};
  for (std::size_t k = 0; k < steps; ++k)
    colours.pixels.push_back(colour_on_bar(
        shading,
        (static_cast<double>(k) + (steps > 2 ? 0.5 : 0)) / static_cast<double>(steps > 2 ? steps : 1),
        palette));
  bar.items.emplace_back(std::move(colours));
  const double base = thick / 2 + 0.36 * index_size;
  add_text(bar, {left - room, base}, Anchor::end, low_end, index_size, palette.dim, true);
  add_text(bar, {left + length + room, base}, Anchor::start, high_end, index_size, palette.dim, true);
  Triangles ends{{}, palette.faint};
  for (const double v : {smallest, largest}) {
    const double x = left + length * colour::share_of_bar(shading, v);
    ends.corners.push_back(
        {Point{x, thick + 1}, Point{x - mark, thick + 1 + mark}, Point{x + mark, thick + 1 + mark}});
  }
  bar.items.emplace_back(std::move(ends));
  bar.width = left + length + right, bar.height = 14;
  return bar;
}

MapFigure map_figure(const Map& map, const Palette& palette) {
  MapFigure figure;
  Grid grid = grid_of(map);
  const Labels labels = labels_of(map, grid);
  const double above = map.title.empty() ? 0 : title_height;
  grid.picture.x = labels.row_room, grid.picture.y = above + labels.column_room;
  if (!map.title.empty()) figure.list.items.emplace_back(Text{{0, 16}, Anchor::start, map.title});
  draw_cells(figure.list, map, grid, palette);
  figure.unit = draw_numbers(figure.list, map, grid, palette);
  draw_rows(figure.list, map, grid, labels, palette);
  draw_columns(figure.list, map, grid, labels, palette);
  figure.picture = grid.picture;
  figure.block_rows = grid.block_rows, figure.block_columns = grid.block_columns;
  for (const colour::CellLook& look : grid.looks) figure.marks |= look.marks;
  figure.list.width = std::max(grid.picture.x + grid.picture.width, text_width(map.title));
  figure.list.height = grid.picture.y + grid.picture.height;
  if (map.bar) add_bar(figure, map, palette);
  return figure;
}

}  // namespace core::figures
