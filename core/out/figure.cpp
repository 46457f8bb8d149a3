#include "core/out/figure.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/graph/graph.hpp"
#include "core/out/export.hpp"

namespace core::figures {

namespace {

using attention::Coloring;
using attention::Columns;
using attention::Model;
using attention::Stage;
using attention::StageInfo;
using attention::Trace;
using color::CellStyle;
using color::Palette;
using std::to_string;
namespace mark = color::mark;

/// Limit of the cell size.
enum class CellSizeLimit { single_map, several_maps };

/// One matrix to be drawn as a heatmap.
struct FigureMap {
  formats::LabeledMatrix matrix;
  std::vector<FontRun> title;  ///< above the map
  color::Shading shading = {};
  const arma::mat* visible = nullptr;  ///< same size as the numbers: 0 = masked, or nullptr
  const arma::mat* kept = nullptr;     ///< same size as the numbers: 0 = dropped, or nullptr
  std::vector<attention::MaskCell> by_hand = {};
  bool tokens_above = true;  ///< columns are tokens, with their index below the name
  bool plain_one = false;    ///< an exact one is written "1"
  bool numbers = true;       ///< in cells that are large enough
  bool bar = true;           ///< a color bar below
  CellSizeLimit room = CellSizeLimit::single_map;
};

/// A heatmap with its title, labels, numbers, marks and color bar; picture is the area of its cells.
struct HeatmapFigure {
  DisplayList list;
  FigureRect cells_area;
  unsigned marks = 0;                             ///< marks of all cells: a sum of color::mark
  std::size_t block_rows = 1, block_columns = 1;  ///< cells per pixel
  double unit = 1;                                ///< factor of the numbers in the cells
};

/// Cells of a map, or blocks of them, as they are drawn.
struct CellGrid {
  FigureRect cells_area;
  std::size_t rows = 0, columns = 0;  ///< drawn cells
  std::size_t block_rows = 1, block_columns = 1;
  double cell_width = 0, cell_height = 0;
  bool separate = true;          ///< cells are separate boxes, one pixel apart
  std::vector<CellStyle> looks;  ///< rows × columns

  const CellStyle& cell_style(std::size_t row, std::size_t column) const {
    return looks[row * columns + column];
  }
  FigureRect cell(std::size_t row, std::size_t column) const {
    const double gap = separate ? 1 : 0;
    return {cells_area.x + static_cast<double>(column) * cell_width,
            cells_area.y + static_cast<double>(row) * cell_height, cell_width - gap, cell_height - gap};
  }
};

/// Content of the legend of some maps: marks, pooling and units.
struct LegendContent {
  unsigned marks = 0;
  bool by_hand = false;
  std::size_t block_rows = 1, block_columns = 1;
  std::set<std::string> pooling_label;  ///< shown number of several cells: "largest"
  std::set<double> units;               ///< of the numbers in cells, including 1
  bool logarithmic = false;

  void add(const HeatmapFigure& figure, const FigureMap& map) {
    marks |= figure.marks;
    by_hand |= !map.by_hand.empty();
    block_rows = std::max(block_rows, figure.block_rows),
    block_columns = std::max(block_columns, figure.block_columns);
    if (figure.block_rows * figure.block_columns > 1)
      pooling_label.insert(color::pooling_label(map.shading.map));
    units.insert(figure.unit);
    logarithmic |= map.shading.least > 0;
  }
};

constexpr double title_height = 26, index_size = 12, row_size = 13, column_size = 12;
constexpr double max_row_name_width = 130, max_column_name_width = 96, bar_gap = 10;
constexpr std::size_t max_boxes = 1024, max_boxes_per_map = 400;

/// Returns the cell size for count cells, in whole pixels.
double pitch(std::size_t count, CellSizeLimit room, bool tall) {
  struct CellSize {
    std::size_t count;
    double wide, high;
  };
  constexpr CellSize one[]{{8, 56, 34}, {12, 48, 30}, {16, 42, 26}, {24, 34, 22}, {32, 20, 20}};
  constexpr CellSize several[]{{8, 48, 27}, {12, 38, 24}, {16, 34, 22}, {24, 16, 16}};
  const std::span<const CellSize> steps =
      room == CellSizeLimit::single_map ? std::span<const CellSize>(one) : several;
  for (const CellSize& step : steps)
    if (count <= step.count) return tall ? step.high : step.wide;
  const double side = room == CellSizeLimit::single_map ? 640 : 380;
  return std::max(1.0, std::floor(side / static_cast<double>(count)));
}

std::size_t block_size(std::size_t count, CellSizeLimit room) {
  const std::size_t most = room == CellSizeLimit::single_map ? 640 : 380;
  return (count + most - 1) / most;
}

/// Returns for each block whether any number is not 0.
std::vector<double> flags(const arma::mat* m, color::BlockRange rows, color::BlockRange columns) {
  return m ? color::pooled(color::ColorMap::weights, *m, rows, columns) : std::vector<double>{};
}

CellGrid grid_of(const FigureMap& map) {
  const arma::mat& numbers = map.matrix.numbers;
  CellGrid g;
  g.block_rows = block_size(numbers.n_rows, map.room), g.block_columns = block_size(numbers.n_cols, map.room);
  g.rows = (numbers.n_rows + g.block_rows - 1) / g.block_rows;
  g.columns = (numbers.n_cols + g.block_columns - 1) / g.block_columns;
  g.cell_width = pitch(g.columns, map.room, false), g.cell_height = pitch(g.rows, map.room, true);
  if (map.tokens_above && g.columns > 24)
    g.cell_width = g.cell_height = std::min(g.cell_width, g.cell_height);
  const std::size_t boxes = map.room == CellSizeLimit::single_map ? max_boxes : max_boxes_per_map;
  g.separate = g.cell_width >= 8 && g.cell_height >= 8 && g.rows * g.columns <= boxes;
  g.cells_area = {0, 0, static_cast<double>(g.columns) * g.cell_width,
                  static_cast<double>(g.rows) * g.cell_height};
  const color::BlockRange rows{0, g.rows, g.block_rows}, columns{0, g.columns, g.block_columns};
  const std::vector<double> shown = color::pooled(map.shading.map, numbers, rows, columns);
  const std::vector<double> visible = flags(map.visible, rows, columns),
                            kept = flags(map.kept, rows, columns);
  for (std::size_t k = 0; k < shown.size(); ++k)
    g.looks.push_back(color::cell_style(map.shading, shown[k], !visible.empty() && visible[k] == 0,
                                        !kept.empty() && kept[k] == 0));
  return g;
}

void add_text(DisplayList& list, Point at, Anchor anchor, const std::string& words, double size, Rgb ink,
              bool mono = false) {
  list.items.emplace_back(TextLine{at, anchor, {{words, size, ink, mono}}});
}

constexpr double min_marked_cell = 5;  // in pixels; smaller cells have no × or cut corner
constexpr double number_size = 13, min_number_cell_width = 26, min_number_cell_height = 15;

/// Marks by color, so that a thousand hatched cells are one item.
struct Marks {
  std::map<std::tuple<int, int, int>, HatchedRects> hatches;
  std::map<std::tuple<int, int, int>, LineSegments> crosses;
  LineSegments nans{{}, 1.2, {}};
  std::vector<Triangles> corners;
};

std::tuple<int, int, int> key(Rgb c) {
  return {c.r, c.g, c.b};
}

/// Adds an area, or extends the previous one if they adjoin.
void add_hatch(HatchedRects& hatch, FigureRect area, bool joined) {
  if (joined && !hatch.areas.empty()) {
    FigureRect& last = hatch.areas.back();
    if (last.y == area.y && std::abs(last.x + last.width - area.x) < 1e-9) {
      last.width += area.width;
      return;
    }
  }
  hatch.areas.push_back(area);
}

void add_dropped_cross(LineSegments& lines, const FigureRect& a) {
  const Point middle{a.x + std::floor(a.width / 2), a.y + std::floor(a.height / 2)};
  if (std::min(a.width, a.height) < 14) {  // too small for a cross: half of one
    const double r = std::min(a.width, a.height) / 2;
    lines.ends.push_back({Point{middle.x - r, middle.y - r}, Point{middle.x + r, middle.y + r}});
    return;
  }
  lines.ends.push_back({Point{middle.x - 4, middle.y - 4}, Point{middle.x + 4, middle.y + 4}});
  lines.ends.push_back({Point{middle.x - 4, middle.y + 4}, Point{middle.x + 4, middle.y - 4}});
}

Triangles cut_corner(const FigureRect& a, bool above, Rgb ink) {
  const double side = std::clamp(0.45 * std::min(a.width, a.height), 1.5, 9.0), right = a.x + a.width;
  const double y = above ? a.y : a.y + a.height, inner = above ? y + side : y - side;
  return {{{Point{right - side, y}, Point{right, y}, Point{right, inner}}}, ink};
}

void add_marks(Marks& all, const CellGrid& grid, const FigureRect& area, const CellStyle& cell_style,
               Rgb background, const Palette& p) {
  const Rgb ink = color::readable_on(background);
  if (cell_style.marks & mark::not_a_number) {
    all.nans.color = p.status.bad;
    all.nans.ends.push_back({Point{area.x, area.y}, Point{area.x + area.width, area.y + area.height}});
    all.nans.ends.push_back({Point{area.x, area.y + area.height}, Point{area.x + area.width, area.y}});
    return;
  }
  const bool hatched = cell_style.marks & (mark::masked | mark::minus_infinity);
  if (hatched) {
    const Rgb line =
        cell_style.marks & mark::minus_infinity ? p.hatch.lines : color::mix(ink, background, 0.18f);
    HatchedRects& hatch = all.hatches[key(line)];
    hatch.line = line;
    add_hatch(hatch, area, !grid.separate);
  }
  if (std::min(area.width, area.height) < min_marked_cell) return;
  if (cell_style.marks & mark::dropped) {
    const bool small = std::min(area.width, area.height) < 14;
    const Rgb line = small ? color::mix(ink, background, 0.45f) : ink;
    LineSegments& cross = all.crosses[key(line)];
    cross.color = line, cross.thickness = small ? 0.8 : 1.5;
    add_dropped_cross(cross, area);
  }
  if (cell_style.marks & (mark::above | mark::below))
    all.corners.push_back(cut_corner(area, cell_style.marks & mark::above, ink));
}

/// Returns the color of a cell without its marks.
Rgb cell_color(const FigureMap& map, const CellStyle& cell_style, const Palette& palette) {
  if (cell_style.marks & (mark::not_a_number | mark::minus_infinity)) return palette.hatch.background;
  const color::Shading& s = map.shading;
  const double place = cell_style.marks & mark::dropped
                           ? color::position_in_range(s.map, s.low, s.high, 0, s.least)
                           : cell_style.place;
  return color::color_at(s.map, palette.dark, place);
}

/// Draws the colors and marks of all cells.
void draw_cells(DisplayList& list, const FigureMap& map, const CellGrid& grid, const Palette& palette) {
  PixelGrid image{grid.cells_area, grid.rows, grid.columns, {}};
  Marks marks;
  for (std::size_t i = 0; i < grid.rows; ++i)
    for (std::size_t j = 0; j < grid.columns; ++j) {
      const CellStyle& cell_style = grid.cell_style(i, j);
      Rgb background = cell_color(map, cell_style, palette);
      add_marks(marks, grid, grid.cell(i, j), cell_style, background, palette);
      if (grid.separate) {
        list.items.emplace_back(FilledRect{grid.cell(i, j), background});
      } else {
        if (cell_style.marks & mark::not_a_number)
          background = palette.status.bad;  // a cross would be too small to see
        image.pixels.push_back(background);
      }
    }
  if (!grid.separate) list.items.emplace_back(std::move(image));
  for (auto& [unused, hatch] : marks.hatches) list.items.emplace_back(std::move(hatch));
  for (auto& [unused, lines] : marks.crosses) list.items.emplace_back(std::move(lines));
  if (grid.separate && !marks.nans.ends.empty()) list.items.emplace_back(std::move(marks.nans));
  for (Triangles& corner : marks.corners) list.items.emplace_back(std::move(corner));
  if (grid.block_rows > 1 || grid.block_columns > 1) return;
  for (const attention::MaskCell& cell : map.by_hand) {
    const FigureRect a = grid.cell(cell.row, cell.column);
    const double side = std::min(6.0, a.height / 3), x = a.x + 2, y = a.y + 2;
    list.items.emplace_back(FilledRect{{x, y, side, side}, palette.accent});
  }
}

/// Draws the numbers in the cells; returns their unit.
double draw_numbers(DisplayList& list, const FigureMap& map, const CellGrid& grid, const Palette& palette) {
  const arma::mat& numbers = map.matrix.numbers;
  if (!map.numbers || !grid.separate) return 1;
  if (grid.cell_width < min_number_cell_width || grid.cell_height < min_number_cell_height) return 1;
  const double character = text_width("0", number_size, true);
  const int close = static_cast<int>((grid.cell_width - 2) / character),
            clear = static_cast<int>((grid.cell_width - 6) / character);
  const text::NumberFormat format = text::choose_format(numbers, {0, numbers.n_rows, 0, numbers.n_cols},
                                                        std::max(std::min(close, 5), clear));
  for (std::size_t i = 0; i < grid.rows; ++i)
    for (std::size_t j = 0; j < grid.columns; ++j) {
      const double v = numbers(i, j);
      const CellStyle& cell_style = grid.cell_style(i, j);
      if (cell_style.marks & mark::dropped || (!format.fits && std::isfinite(v) && v != 0)) continue;
      Rgb ink = color::readable_on(cell_color(map, cell_style, palette));
      if (std::isnan(v)) ink = palette.status.bad;
      if (std::isinf(v) || cell_style.marks & mark::masked) ink = palette.faint;
      const FigureRect a = grid.cell(i, j);
      const std::string words = text::cell_text(v, format, map.plain_one);
      const Point middle{a.x + a.width / 2, a.y + a.height / 2};
      if (std::isnan(v)) {  // clear the cross behind the word
        const double half = text_width(words, number_size, true) / 2 + 2;
        list.items.emplace_back(
            FilledRect{{middle.x - half, middle.y - 7, 2 * half, 14}, palette.hatch.background});
      }
      list.items.emplace_back(TextLine{
          {middle.x, middle.y + 0.36 * number_size}, Anchor::middle, {{words, number_size, ink, true}}});
    }
  return format.unit;
}

/// Labels around the cells, which determine the position of the cells.
struct MapLabels {
  std::vector<std::string> rows, columns;  ///< as drawn
  double row_label_width = 0, index_width = 0, column_label_height = 0;
  bool has_rotated_columns = false;  ///< whether column names are rotated
};

MapLabels labels_of(const FigureMap& map, const CellGrid& g) {
  MapLabels labels;
  const double column_pitch = g.cell_width * static_cast<double>(label_step(g.cell_width, 14));
  double widest = 0, longest = 0;
  // Names that only repeat the indices are omitted.
  const bool named_rows = map.matrix.row_labels != attention::numbered_tokens(map.matrix.numbers.n_rows);
  const bool named_columns =
      map.matrix.column_labels != attention::numbered_tokens(map.matrix.numbers.n_cols);
  for (std::size_t i = 0; named_rows && i < map.matrix.row_labels.size(); ++i) {
    const std::string& name = map.matrix.row_labels[i];
    labels.rows.push_back(shortened(token_label(name), row_size, max_row_name_width));
    widest = std::max(widest, text_width(labels.rows.back(), row_size));
  }
  labels.index_width = text_width(std::to_string(map.matrix.numbers.n_rows - 1), index_size, true);
  labels.row_label_width = std::ceil((named_rows ? widest + 5 : 0) + labels.index_width + 6);
  labels.column_label_height = 18;
  if (!map.tokens_above || !named_columns) return labels;
  for (const std::string& name : map.matrix.column_labels) {
    labels.columns.push_back(token_label(name));
    longest = std::max(longest, text_width(labels.columns.back(), column_size));
  }
  labels.has_rotated_columns = longest + 6 > column_pitch;
  if (labels.has_rotated_columns) {
    for (std::string& name : labels.columns) name = shortened(name, column_size, max_column_name_width);
    labels.column_label_height += std::min(longest, max_column_name_width) + 6;
  } else {
    labels.column_label_height += 16;
  }
  return labels;
}

void draw_rows(DisplayList& list, const FigureMap& map, const CellGrid& g, const MapLabels& labels,
               const Palette& p) {
  const double cell = g.cell_height / static_cast<double>(g.block_rows), right = g.cells_area.x - 6;
  const std::size_t step = label_step(cell, 15);
  for (std::size_t i = 0; i < map.matrix.numbers.n_rows; i += step) {
    const double middle = g.cells_area.y + (static_cast<double>(i) + 0.5) * cell;
    add_text(list, {right, middle + 0.36 * index_size}, Anchor::end, std::to_string(i), index_size, p.faint,
             true);
    if (labels.rows.empty()) continue;
    add_text(list, {right - labels.index_width - 5, middle + 0.36 * row_size}, Anchor::end, labels.rows[i],
             row_size, p.dim);
  }
}

void draw_columns(DisplayList& list, const FigureMap& map, const CellGrid& g, const MapLabels& labels,
                  const Palette& p) {
  const double cell = g.cell_width / static_cast<double>(g.block_columns), base = g.cells_area.y - 6;
  const std::size_t count = map.matrix.numbers.n_cols;
  const double index = text_width(std::to_string(count - 1), index_size, true) + 6;
  const std::size_t step = label_step(cell, labels.has_rotated_columns ? std::max(14.0, index) : index);
  for (std::size_t j = 0; j < count; j += step) {
    const double middle = g.cells_area.x + (static_cast<double>(j) + 0.5) * cell;
    add_text(list, {middle, base}, Anchor::middle, std::to_string(j), index_size, p.faint, true);
    if (labels.columns.empty()) continue;
    if (labels.has_rotated_columns)
      list.items.emplace_back(TextLine{{middle + 0.36 * column_size, base - 16},
                                       Anchor::start,
                                       {{labels.columns[j], column_size, p.dim}},
                                       true});
    else
      add_text(list, {middle, base - 15}, Anchor::middle, labels.columns[j], column_size, p.dim);
  }
}

Rgb color_on_bar(const color::Shading& s, double share, const Palette& palette) {
  const double number = color::number_at_bar_fraction(s, share);
  return color::color_at(s.map, palette.dark,
                         color::position_in_range(s.map, s.low, s.high, number, s.least));
}

/// Returns a color bar with labeled ends and small triangles at the smallest and largest finite number.
DisplayList bar_figure(const color::Shading& shading, double smallest, double largest, double width,
                       const Palette& palette) {
  const std::size_t steps =
      shading.map == color::ColorMap::mask ? 2 : 64;  // a mask has no numbers in between
  constexpr double thick = 6, mark = 3, room = 5;
  DisplayList bar;
  const std::string low_end = end_text(color::number_at_bar_fraction(shading, 0), true),
                    high_end = end_text(color::number_at_bar_fraction(shading, 1), true);
  const double left = text_width(low_end, index_size, true) + room,
               right = text_width(high_end, index_size, true) + room;
  const double length = std::max(64.0, std::floor(width - left - right));
  PixelGrid colors{{left, 0, length, thick}, 1, steps, {}};
  for (std::size_t k = 0; k < steps; ++k)
    colors.pixels.push_back(color_on_bar(
        shading,
        (static_cast<double>(k) + (steps > 2 ? 0.5 : 0)) / static_cast<double>(steps > 2 ? steps : 1),
        palette));
  bar.items.emplace_back(std::move(colors));
  const double base = thick / 2 + 0.36 * index_size;
  add_text(bar, {left - room, base}, Anchor::end, low_end, index_size, palette.dim, true);
  add_text(bar, {left + length + room, base}, Anchor::start, high_end, index_size, palette.dim, true);
  Triangles ends{{}, palette.faint};
  for (const double v : {smallest, largest}) {
    const double x = left + length * color::bar_fraction(shading, v);
    ends.corners.push_back(
        {Point{x, thick + 1}, Point{x - mark, thick + 1 + mark}, Point{x + mark, thick + 1 + mark}});
  }
  bar.items.emplace_back(std::move(ends));
  bar.width = left + length + right, bar.height = 14;
  return bar;
}

/// Widens a range to the finite numbers of a map.
void widen(double& smallest, double& largest, const FigureMap& map) {
  for (const double v : map.matrix.numbers)
    if (std::isfinite(v)) smallest = std::min(smallest, v), largest = std::max(largest, v);
}

void add_bar(HeatmapFigure& figure, const FigureMap& map, const Palette& palette) {
  double smallest = map.shading.high, largest = map.shading.low;
  widen(smallest, largest, map);
  const FigureRect& p = figure.cells_area;
  const DisplayList bar = bar_figure(map.shading, smallest, largest, std::max(p.width - 1, 64.0), palette);
  append(figure.list, bar, {p.x, p.y + p.height + bar_gap});
  figure.list.height += bar_gap + bar.height;
  figure.list.width = std::max(figure.list.width, p.x + bar.width);
}

/// Draws a map at the origin; color::pooled() pools matrices with more cells than pixels.
HeatmapFigure map_figure(const FigureMap& map, const Palette& palette) {
  HeatmapFigure figure;
  CellGrid grid = grid_of(map);
  const MapLabels labels = labels_of(map, grid);
  const double above = map.title.empty() ? 0 : title_height;
  grid.cells_area.x = labels.row_label_width, grid.cells_area.y = above + labels.column_label_height;
  if (!map.title.empty()) figure.list.items.emplace_back(TextLine{{0, 16}, Anchor::start, map.title});
  draw_cells(figure.list, map, grid, palette);
  figure.unit = draw_numbers(figure.list, map, grid, palette);
  draw_rows(figure.list, map, grid, labels, palette);
  draw_columns(figure.list, map, grid, labels, palette);
  figure.cells_area = grid.cells_area;
  figure.block_rows = grid.block_rows, figure.block_columns = grid.block_columns;
  for (const color::CellStyle& cell_style : grid.looks) figure.marks |= cell_style.marks;
  figure.list.width = std::max(grid.cells_area.x + grid.cells_area.width, text_width(map.title));
  figure.list.height = grid.cells_area.y + grid.cells_area.height;
  if (map.bar) add_bar(figure, map, palette);
  return figure;
}

/// Legend entry: a small cell with a mark, and its meaning.
struct LegendEntry {
  unsigned mark;
  const char* words;
};
constexpr LegendEntry legend_entries[]{
    {mark::minus_infinity, "−∞"},     {mark::masked, "masked"},
    {mark::dropped, "dropped"},       {mark::not_a_number, "not a number (0/0)"},
    {mark::above, "above the range"}, {mark::below, "below the range"}};

void draw_legend_cell(DisplayList& list, unsigned mark, double x, const Palette& p) {
  constexpr double side = 12;
  const bool plain = mark == mark::not_a_number || mark == mark::minus_infinity;
  const Rgb background = plain ? p.hatch.background : color::color_at(color::ColorMap::weights, p.dark, 0),
            ink = color::readable_on(background);
  list.items.emplace_back(FilledRect{{x, 0, side, side}, background});
  const auto cross = [&](Rgb ink_of_cross, double thickness) {
    list.items.emplace_back(LineSegments{
        {{Point{x + 2, 2}, Point{x + side - 2, side - 2}}, {Point{x + 2, side - 2}, Point{x + side - 2, 2}}},
        thickness,
        ink_of_cross});
  };
  if (mark == mark::minus_infinity)
    list.items.emplace_back(HatchedRects{{{x, 0, side, side}}, p.hatch.lines});
  if (mark == mark::masked)
    list.items.emplace_back(HatchedRects{{{x, 0, side, side}}, color::mix(ink, background, 0.3f)});
  if (mark == mark::dropped) cross(ink, 1.5);
  if (mark == mark::not_a_number) cross(p.status.bad, 1.2);
  const bool above = mark == mark::above;
  if (above || mark == mark::below) {
    const double y = above ? 0 : side, inner = above ? 6 : side - 6;
    list.items.emplace_back(
        Triangles{{{Point{x + side - 6, y}, Point{x + side, y}, Point{x + side, inner}}}, ink});
  }
}

/// Returns the legend of a unit; if there are several, it says which maps have this one.
std::string unit_legend(double unit, bool are_several) {
  const std::string words = "numbers in cells × " + text::unit_text(unit);
  if (!are_several) return words;
  const double least = unit == 0.001 ? 1e-5 : unit;
  return words + " where the largest is from " + text::unit_text(least) + " to " +
         (unit == 0.001 ? "0.01" : text::unit_text(10 * unit));
}

/// Draws the legend, a sample and a few words per entry, in lines no wider than the room.
DisplayList legend_figure(const LegendContent& legend, const Palette& p, double room) {
  DisplayList list;
  double x = 0, y = 0;
  const auto add = [&](const std::string& words, auto draw_swatch, double swatch) {
    const double width = swatch + text_width(words, 12);
    if (x > 0 && x + width > room) x = 0, y += 20;
    DisplayList part;
    draw_swatch(part);
    part.items.emplace_back(TextLine{{swatch, 10.5}, Anchor::start, {{words, 12, p.dim}}});
    append(list, part, {x, y});
    x += width + 22;
    list.width = std::max(list.width, x - 22), list.height = y + 14;
  };
  for (const LegendEntry& entry : legend_entries)
    if (legend.marks & entry.mark)
      add(
          entry.words, [&](DisplayList& part) { draw_legend_cell(part, entry.mark, 0, p); }, 18);
  if (legend.by_hand)
    add(
        "switched by hand",
        [&](DisplayList& part) {
          part.items.emplace_back(FilledRect{{3, 3, 6, 6}, p.accent});
        },
        18);
  const auto nothing = [](DisplayList&) {};
  if (legend.block_rows > 1 || legend.block_columns > 1)
    add(fmt::format("1 pixel shows the {} of {} × {} cells", text::joined(legend.pooling_label, " or the "),
                    legend.block_rows, legend.block_columns),
        nothing, 0);
  if (legend.logarithmic) add("colors follow the logarithm", nothing, 0);
  for (const double unit : legend.units)
    if (unit != 1) add(unit_legend(unit, legend.units.size() > 1), nothing, 0);
  return list;
}

constexpr double margin = 20, map_gap = 40, below = 26;
constexpr double head_label_height = 26;  // height of the line with the head above a strip

struct FigureContext {
  const Model& model;
  const Trace& trace;
  const FigureOptions& options;
  const Palette& palette;
  graph::Graph graph = graph::attention(model);
  attention::StageSet stages = existing_stages(graph, model);

  bool shows_gradient(const StageInfo& stage) const { return options.gradient && stage.stage != Stage::mask; }
  const Trace& numbers(const StageInfo& stage) const {
    return shows_gradient(stage) ? *options.gradient : trace;
  }
  Coloring coloring(const StageInfo& stage) const {
    return shows_gradient(stage) ? Coloring::signed_values : stage.coloring;
  }
};

color::ColorMap color_map_of(const FigureOptions& options, Coloring coloring) {
  switch (coloring) {
    case Coloring::weights:
      return options.sequential;
    case Coloring::mask:
      return color::ColorMap::mask;
    case Coloring::signed_values:
      break;
  }
  return options.diverging;
}

ColorRange range_of(const FigureContext& s, const StageInfo& stage, std::size_t head) {
  if (s.options.range && !s.shows_gradient(stage)) return s.options.range(stage.stage, head);
  if (s.coloring(stage) != Coloring::signed_values)
    return {0, attention::color_range_max(s.model, stage.stage)};
  double largest = 0;
  for (const double v : *s.numbers(stage).at(stage.stage, head))
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  return {-largest, largest};
}

/// Returns one range for all heads.
ColorRange common_range(const FigureContext& s, const StageInfo& stage) {
  ColorRange all = range_of(s, stage, 0);
  for (std::size_t h = 1; h < s.model.n_heads; ++h) {
    const ColorRange one = range_of(s, stage, h);
    all.low = std::min(all.low, one.low), all.high = std::max(all.high, one.high);
    all.least = std::min(all.least, one.least);
  }
  return all;
}

std::vector<FontRun> title(const FigureContext& s, const StageInfo& stage, const std::string& name,
                           const arma::mat& numbers) {
  const bool of_gradient = s.shows_gradient(stage);
  std::vector<FontRun> runs{{(of_gradient ? "∂ " : "") + name, 17, s.palette.text}};
  const std::vector<FontRun> formula =
      formula_runs(of_gradient ? "" : formula_of(s.graph, s.model, stage, false), 14, s.palette.dim);
  runs.insert(runs.end(), formula.begin(), formula.end());
  if (!formula.empty()) runs[1].before = 10;
  runs.push_back({text::shape_text(numbers.n_rows, numbers.n_cols), 13, s.palette.faint, true});
  runs.back().before = 10;
  return runs;
}

FigureMap map_of_stage(const FigureContext& s, const StageInfo& stage, std::size_t head,
                       const ColorRange& range) {
  const bool weights = stage.stage == Stage::weights || stage.stage == Stage::dropped_weights ||
                       stage.stage == Stage::zeroed_weights;
  const bool drops = stage.stage == Stage::dropout_mask || stage.stage == Stage::dropped_weights;
  const bool scores = stage.stage == Stage::scores || stage.stage == Stage::scaled_scores;
  const bool of_tokens = stage.columns == Columns::tokens;
  FigureMap map{.matrix = formats::labeled_stage(s.model, s.numbers(stage), stage, head, s.options.sequence),
                .title = {}};
  map.shading = {color_map_of(s.options, s.coloring(stage)), range.low, range.high, range.least};
  if (weights) map.visible = &static_cast<const arma::mat&>(s.trace.at(Stage::mask));
  if (drops) map.kept = &static_cast<const arma::mat&>(s.trace.at(Stage::dropout_mask, head));
  if (of_tokens && !scores && contains(s.stages, Stage::mask)) map.by_hand = s.model.mask.cells;
  map.tokens_above = of_tokens;
  map.plain_one = s.coloring(stage) != Coloring::signed_values;
  map.numbers = s.options.numbers;
  map.bar = stage.columns != Columns::single;
  return map;
}

DisplayList single_map(const FigureContext& s, const StageInfo& stage, std::size_t head,
                       LegendContent& legend) {
  FigureMap map = map_of_stage(s, stage, head, range_of(s, stage, head));
  const bool many = stage.per_head && s.model.n_heads > 1;
  map.title =
      title(s, stage, stage.title + (many ? ", head " + to_string(head) : std::string()), map.matrix.numbers);
  const HeatmapFigure figure = map_figure(map, s.palette);
  legend.add(figure, map);
  return figure.list;
}

/// Places maps side by side, row below row.
struct RowLayout {
  DisplayList& list;
  double x = 0, y = 0, height = 0;

  void next() { x = 0, y += height + below, height = 0; }
  void add(const HeatmapFigure& part) {
    append(list, part.list, {x, y});
    x += part.list.width + map_gap;
    height = std::max(height, part.list.height);
    list.width = std::max(list.width, x - map_gap);
  }
};

/// Draws all heads of a stage with a common color range and one bar.
DisplayList all_heads(const FigureContext& s, const StageInfo& stage, LegendContent& legend) {
  const std::size_t n = s.model.n_heads, columns = n <= 3 ? n : n <= 8 ? (n + 1) / 2 : 4;
  const ColorRange range = common_range(s, stage);
  DisplayList list;
  double smallest = range.high, largest = range.low;
  RowLayout rows{list, 0, 34};
  for (std::size_t h = 0; h < n; ++h) {
    FigureMap map = map_of_stage(s, stage, h, range);
    if (h == 0)
      list.items.emplace_back(
          TextLine{{0, 16}, Anchor::start, title(s, stage, stage.title, map.matrix.numbers)});
    map.title = {{"head " + to_string(h), 14, s.palette.dim}};
    map.room = CellSizeLimit::several_maps, map.bar = false;
    widen(smallest, largest, map);
    const HeatmapFigure part = map_figure(map, s.palette);
    legend.add(part, map);
    if (h > 0 && h % columns == 0) rows.next();
    rows.add(part);
  }
  const DisplayList bar =
      bar_figure({color_map_of(s.options, s.coloring(stage)), range.low, range.high, range.least}, smallest,
                 largest, std::min(list.width, 420.0), s.palette);
  append(list, bar, {0, rows.y + rows.height + 18});
  list.height = rows.y + rows.height + 18 + bar.height;
  return list;
}

void draw_arrow(DisplayList& list, Point from, double length, Rgb color) {
  const Point tip{from.x + length, from.y};
  list.items.emplace_back(LineSegments{{{from, Point{tip.x - 5, tip.y}}}, 1, color});
  list.items.emplace_back(
      Triangles{{{tip, Point{tip.x - 6, tip.y - 3}, Point{tip.x - 6, tip.y + 3}}}, color});
}

/// Draws the stages of one head in four lines, in reading order.
DisplayList strip(const FigureContext& s, std::size_t head, LegendContent& legend) {
  DisplayList list;
  const bool many = s.model.n_heads > 1;
  RowLayout rows{list, 0, many ? head_label_height : 0};
  if (many)
    list.items.emplace_back(
        TextLine{{0, 14}, Anchor::start, {{"head " + to_string(head), 14, s.palette.dim}}});
  int line = 0;
  std::optional<FigureRect> before;  // cells of the previous map in the same line
  for (const StageInfo& stage : attention::stages()) {
    if (!contains(s.stages, stage.stage)) continue;
    const std::size_t h = stage.per_head ? head : 0;
    FigureMap map = map_of_stage(s, stage, h, range_of(s, stage, h));
    map.title = title(s, stage, stage.title, map.matrix.numbers);
    map.room = CellSizeLimit::several_maps;
    const HeatmapFigure part = map_figure(map, s.palette);
    legend.add(part, map);
    if (stage.line != line) {
      if (line > 0) rows.next();
      line = stage.line, before.reset();
    }
    const bool siblings = stage.stage == Stage::keys || stage.stage == Stage::values;
    const double middle = rows.y + part.cells_area.y + part.cells_area.height / 2;
    const double arrow = rows.x - map_gap + 8;
    rows.add(part);
    if (before && !siblings) draw_arrow(list, {arrow, middle}, map_gap - 16, s.palette.faint);
    before = part.cells_area;
  }
  list.height = rows.y + rows.height;
  return list;
}

DisplayList content(const FigureContext& s, LegendContent& legend) {
  const FigureOptions& o = s.options;
  if (o.head && *o.head >= s.model.n_heads)
    throw Error(fmt::format("head {}: the model has {} (0 is the first)", *o.head, s.model.n_heads));
  if (!o.stage) return strip(s, o.head.value_or(0), legend);
  const StageInfo& stage = attention::info(*o.stage);
  if (!contains(s.stages, stage.stage))
    throw Error(std::string("stage \"") + stage.name + "\": this model does not have it");
  if (!stage.per_head) return single_map(s, stage, 0, legend);
  if (o.head) return single_map(s, stage, *o.head, legend);
  return s.model.n_heads == 1 ? single_map(s, stage, 0, legend) : all_heads(s, stage, legend);
}

std::string figure_title(const Model& model, const FigureOptions& o) {
  const std::string of = o.gradient ? "∂ " : "";
  if (!o.stage) return of + "Attention, stage by stage, head " + to_string(o.head.value_or(0));
  const StageInfo& stage = attention::info(*o.stage);
  const bool of_head = stage.per_head && model.n_heads > 1;
  return of + stage.title + (!of_head ? "" : o.head ? ", head " + to_string(*o.head) : ", all heads");
}

}  // namespace

DisplayList figure(const Model& model, const Trace& trace, const FigureOptions& options) {
  const FigureContext source{model, trace, options, color::palette(options.dark)};
  LegendContent legend;
  const DisplayList inner = content(source, legend);
  const DisplayList words = legend_figure(legend, source.palette, std::max(inner.width, 320.0));
  DisplayList whole;
  whole.background = source.palette.background.back;
  whole.title = figure_title(model, options);
  append(whole, inner, {margin, margin});
  whole.height = margin + inner.height;
  if (words.height > 0) {
    append(whole, words, {margin, whole.height + 16});
    whole.height += 16 + words.height;
  }
  whole.width = std::ceil(2 * margin + std::max(inner.width, words.width));
  whole.height = std::ceil(whole.height + margin);
  return whole;
}

DisplayList figure(const formats::LabeledMatrix& matrix, const std::string& title, bool dark) {
  const Palette palette = color::palette(dark);
  FigureMap map{matrix, formula_runs(title, 14, palette.text)};
  map.tokens_above = false;
  DisplayList whole;
  whole.background = palette.background.back;
  whole.title = title;
  const DisplayList inner = map_figure(map, palette).list;
  append(whole, inner, {margin, margin});
  whole.width = std::ceil(2 * margin + inner.width), whole.height = std::ceil(2 * margin + inner.height);
  return whole;
}

}  // namespace core::figures
