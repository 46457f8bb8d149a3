#include "core/out/figure.hpp"

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
#include "core/out/export.hpp"

namespace core::figures {

namespace {

using attention::Coloring;
using attention::Columns;
using attention::Model;
using attention::Stage;
using attention::StageInfo;
using attention::Trace;
using color::CellLook;
using color::Palette;
using std::to_string;
namespace mark = color::mark;

/// Limit of the cell size.
enum class Room { one_map, several_maps };

/// One matrix to be drawn as a heatmap.
struct Map {
  formats::LabelledMatrix matrix;
  std::vector<Run> title;  ///< above the map
  color::Shading shading = {};
  const arma::mat* visible = nullptr;  ///< same size as the numbers: 0 = masked, or nullptr
  const arma::mat* kept = nullptr;     ///< same size as the numbers: 0 = dropped, or nullptr
  std::vector<attention::MaskCell> by_hand = {};
  bool tokens_above = true;  ///< columns are tokens, with their index below the name
  bool plain_one = false;    ///< an exact one is written "1"
  bool numbers = true;       ///< in cells that are large enough
  bool bar = true;           ///< a color bar below
  Room room = Room::one_map;
};

/// A heatmap with its title, labels, numbers, marks and color bar; picture is the area of its cells.
struct MapFigure {
  DisplayList list;
  Area picture;
  unsigned marks = 0;                             ///< marks of all cells: a sum of color::mark
  std::size_t block_rows = 1, block_columns = 1;  ///< cells per pixel
  double unit = 1;                                ///< factor of the numbers in the cells
};

/// Cells of a map, or blocks of them, as they are drawn.
struct Grid {
  Area picture;
  std::size_t rows = 0, columns = 0;  ///< drawn cells
  std::size_t block_rows = 1, block_columns = 1;
  double cell_width = 0, cell_height = 0;
  bool separate = true;         ///< cells are separate boxes, one pixel apart
  std::vector<CellLook> looks;  ///< rows × columns

  const CellLook& look(std::size_t row, std::size_t column) const { return looks[row * columns + column]; }
  Area cell(std::size_t row, std::size_t column) const {
    const double gap = separate ? 1 : 0;
    return {picture.x + static_cast<double>(column) * cell_width,
            picture.y + static_cast<double>(row) * cell_height, cell_width - gap, cell_height - gap};
  }
};

/// Content of the legend of some maps: marks, pooling and units.
struct Notes {
  unsigned marks = 0;
  bool by_hand = false;
  std::size_t block_rows = 1, block_columns = 1;
  std::set<std::string> pooled_as;  ///< shown number of several cells: "largest"
  std::set<double> units;           ///< of the numbers in cells, including 1
  bool logarithmic = false;

  void add(const MapFigure& figure, const Map& map) {
    marks |= figure.marks;
    by_hand |= !map.by_hand.empty();
    block_rows = std::max(block_rows, figure.block_rows),
    block_columns = std::max(block_columns, figure.block_columns);
    if (figure.block_rows * figure.block_columns > 1) pooled_as.insert(color::pooled_as(map.shading.map));
    units.insert(figure.unit);
    logarithmic |= map.shading.least > 0;
  }
};

constexpr double title_height = 26, index_size = 12, row_size = 13, column_size = 12;
constexpr double widest_row_name = 130, longest_column_name = 96, bar_gap = 10;
constexpr std::size_t most_boxes = 1024, most_boxes_of_several = 400;

/// Returns the cell size for count cells, in whole pixels.
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

/// Returns for each block whether any number is not 0.
std::vector<double> flags(const arma::mat* m, color::Blocks rows, color::Blocks columns) {
  return m ? color::pooled(color::ColorMap::weights, *m, rows, columns) : std::vector<double>{};
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
  const color::Blocks rows{0, g.rows, g.block_rows}, columns{0, g.columns, g.block_columns};
  const std::vector<double> shown = color::pooled(map.shading.map, numbers, rows, columns);
  const std::vector<double> visible = flags(map.visible, rows, columns),
                            kept = flags(map.kept, rows, columns);
  for (std::size_t k = 0; k < shown.size(); ++k)
    g.looks.push_back(color::look(map.shading, shown[k], !visible.empty() && visible[k] == 0,
                                  !kept.empty() && kept[k] == 0));
  return g;
}

void add_text(DisplayList& list, Point at, Anchor anchor, const std::string& words, double size, Rgb ink,
              bool mono = false) {
  list.items.emplace_back(Text{at, anchor, {{words, size, ink, mono}}});
}

constexpr double smallest_mark = 5;  // in pixels; smaller cells have no × or cut corner
constexpr double number_size = 13, smallest_number_cell_width = 26, smallest_number_cell_height = 15;

/// Marks by color, so that a thousand hatched cells are one item.
struct Marks {
  std::map<std::tuple<int, int, int>, Hatch> hatches;
  std::map<std::tuple<int, int, int>, Lines> crosses;
  Lines nans{{}, 1.2, {}};
  std::vector<Triangles> corners;
};

std::tuple<int, int, int> key(Rgb c) {
  return {c.r, c.g, c.b};
}

/// Adds an area, or extends the previous one if they adjoin.
void add_hatch(Hatch& hatch, Area area, bool joined) {
  if (joined && !hatch.areas.empty()) {
    Area& last = hatch.areas.back();
    if (last.y == area.y && std::abs(last.x + last.width - area.x) < 1e-9) {
      last.width += area.width;
      return;
    }
  }
  hatch.areas.push_back(area);
}

void cross_dropped(Lines& lines, const Area& a) {
  const Point middle{a.x + std::floor(a.width / 2), a.y + std::floor(a.height / 2)};
  if (std::min(a.width, a.height) < 14) {  // too small for a cross: half of one
    const double r = std::min(a.width, a.height) / 2;
    lines.ends.push_back({Point{middle.x - r, middle.y - r}, Point{middle.x + r, middle.y + r}});
    return;
  }
  lines.ends.push_back({Point{middle.x - 4, middle.y - 4}, Point{middle.x + 4, middle.y + 4}});
  lines.ends.push_back({Point{middle.x - 4, middle.y + 4}, Point{middle.x + 4, middle.y - 4}});
}

Triangles cut_corner(const Area& a, bool above, Rgb ink) {
  const double side = std::clamp(0.45 * std::min(a.width, a.height), 1.5, 9.0), right = a.x + a.width;
  const double y = above ? a.y : a.y + a.height, inner = above ? y + side : y - side;
  return {{{Point{right - side, y}, Point{right, y}, Point{right, inner}}}, ink};
}

void add_marks(Marks& all, const Grid& grid, const Area& area, const CellLook& look, Rgb ground,
               const Palette& p) {
  const Rgb ink = color::readable_on(ground);
  if (look.marks & mark::not_a_number) {
    all.nans.color = p.status.bad;
    all.nans.ends.push_back({Point{area.x, area.y}, Point{area.x + area.width, area.y + area.height}});
    all.nans.ends.push_back({Point{area.x, area.y + area.height}, Point{area.x + area.width, area.y}});
    return;
  }
  const bool hatched = look.marks & (mark::hidden | mark::minus_infinity);
  if (hatched) {
    const Rgb line = look.marks & mark::minus_infinity ? p.hatch.lines : color::mix(ink, ground, 0.18f);
    Hatch& hatch = all.hatches[key(line)];
    hatch.line = line;
    add_hatch(hatch, area, !grid.separate);
  }
  if (std::min(area.width, area.height) < smallest_mark) return;
  if (look.marks & mark::dropped) {
    const bool small = std::min(area.width, area.height) < 14;
    const Rgb line = small ? color::mix(ink, ground, 0.45f) : ink;
    Lines& cross = all.crosses[key(line)];
    cross.color = line, cross.thickness = small ? 0.8 : 1.5;
    cross_dropped(cross, area);
  }
  if (look.marks & (mark::above | mark::below))
    all.corners.push_back(cut_corner(area, look.marks & mark::above, ink));
}

/// Returns the color of a cell without its marks.
Rgb ground_of(const Map& map, const CellLook& look, const Palette& palette) {
  if (look.marks & (mark::not_a_number | mark::minus_infinity)) return palette.hatch.ground;
  const color::Shading& s = map.shading;
  const double place =
      look.marks & mark::dropped ? color::place_in_range(s.map, s.low, s.high, 0, s.least) : look.place;
  return color::color_at(s.map, palette.dark, place);
}

/// Draws the colors and marks of all cells.
void draw_cells(DisplayList& list, const Map& map, const Grid& grid, const Palette& palette) {
  Image image{grid.picture, grid.rows, grid.columns, {}};
  Marks marks;
  for (std::size_t i = 0; i < grid.rows; ++i)
    for (std::size_t j = 0; j < grid.columns; ++j) {
      const CellLook& look = grid.look(i, j);
      Rgb ground = ground_of(map, look, palette);
      add_marks(marks, grid, grid.cell(i, j), look, ground, palette);
      if (grid.separate) {
        list.items.emplace_back(Box{grid.cell(i, j), ground});
      } else {
        if (look.marks & mark::not_a_number)
          ground = palette.status.bad;  // a cross would be too small to see
        image.pixels.push_back(ground);
      }
    }
  if (!grid.separate) list.items.emplace_back(std::move(image));
  for (auto& [unused, hatch] : marks.hatches) list.items.emplace_back(std::move(hatch));
  for (auto& [unused, lines] : marks.crosses) list.items.emplace_back(std::move(lines));
  if (grid.separate && !marks.nans.ends.empty()) list.items.emplace_back(std::move(marks.nans));
  for (Triangles& corner : marks.corners) list.items.emplace_back(std::move(corner));
  if (grid.block_rows > 1 || grid.block_columns > 1) return;
  for (const attention::MaskCell& cell : map.by_hand) {
    const Area a = grid.cell(cell.row, cell.column);
    const double side = std::min(6.0, a.height / 3), x = a.x + 2, y = a.y + 2;
    list.items.emplace_back(Box{{x, y, side, side}, palette.accent});
  }
}

/// Draws the numbers in the cells; returns their unit.
double draw_numbers(DisplayList& list, const Map& map, const Grid& grid, const Palette& palette) {
  const arma::mat& numbers = map.matrix.numbers;
  if (!map.numbers || !grid.separate) return 1;
  if (grid.cell_width < smallest_number_cell_width || grid.cell_height < smallest_number_cell_height)
    return 1;
  const double character = text_width("0", number_size, true);
  const int close = static_cast<int>((grid.cell_width - 2) / character),
            clear = static_cast<int>((grid.cell_width - 6) / character);
  const text::NumberFormat format = text::choose_format(numbers, {0, numbers.n_rows, 0, numbers.n_cols},
                                                        std::max(std::min(close, 5), clear));
  for (std::size_t i = 0; i < grid.rows; ++i)
    for (std::size_t j = 0; j < grid.columns; ++j) {
      const double v = numbers(i, j);
      const CellLook& look = grid.look(i, j);
      if (look.marks & mark::dropped || (!format.fits && std::isfinite(v) && v != 0)) continue;
      Rgb ink = color::readable_on(ground_of(map, look, palette));
      if (std::isnan(v)) ink = palette.status.bad;
      if (std::isinf(v) || look.marks & mark::hidden) ink = palette.faint;
      const Area a = grid.cell(i, j);
      const std::string words = text::cell_text(v, format, map.plain_one);
      const Point middle{a.x + a.width / 2, a.y + a.height / 2};
      if (std::isnan(v)) {  // clear the cross behind the word
        const double half = text_width(words, number_size, true) / 2 + 2;
        list.items.emplace_back(Box{{middle.x - half, middle.y - 7, 2 * half, 14}, palette.hatch.ground});
      }
      list.items.emplace_back(
          Text{{middle.x, middle.y + 0.36 * number_size}, Anchor::middle, {{words, number_size, ink, true}}});
    }
  return format.unit;
}

/// Labels around the cells, which determine the position of the cells.
struct Labels {
  std::vector<std::string> rows, columns;  ///< as drawn
  double row_room = 0, index_room = 0, column_room = 0;
  bool turned = false;  ///< whether column names are rotated
};

Labels labels_of(const Map& map, const Grid& g) {
  Labels labels;
  const double column_pitch = g.cell_width * static_cast<double>(label_step(g.cell_width, 14));
  double widest = 0, longest = 0;
  // Names that only repeat the indices are omitted.
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

Rgb color_on_bar(const color::Shading& s, double share, const Palette& palette) {
  const double number = color::number_on_bar(s, share);
  return color::color_at(s.map, palette.dark, color::place_in_range(s.map, s.low, s.high, number, s.least));
}

/// Returns a color bar with labeled ends and small triangles at the smallest and largest finite number.
DisplayList bar_figure(const color::Shading& shading, double smallest, double largest, double width,
                       const Palette& palette) {
  const std::size_t steps =
      shading.map == color::ColorMap::mask ? 2 : 64;  // a mask has no numbers in between
  constexpr double thick = 6, mark = 3, room = 5;
  DisplayList bar;
  const std::string low_end = end_text(color::number_on_bar(shading, 0), true),
                    high_end = end_text(color::number_on_bar(shading, 1), true);
  const double left = text_width(low_end, index_size, true) + room,
               right = text_width(high_end, index_size, true) + room;
  const double length = std::max(64.0, std::floor(width - left - right));
  Image colors{{left, 0, length, thick}, 1, steps, {}};
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
    const double x = left + length * color::share_of_bar(shading, v);
    ends.corners.push_back(
        {Point{x, thick + 1}, Point{x - mark, thick + 1 + mark}, Point{x + mark, thick + 1 + mark}});
  }
  bar.items.emplace_back(std::move(ends));
  bar.width = left + length + right, bar.height = 14;
  return bar;
}

/// Widens a range to the finite numbers of a map.
void widen(double& smallest, double& largest, const Map& map) {
  for (const double v : map.matrix.numbers)
    if (std::isfinite(v)) smallest = std::min(smallest, v), largest = std::max(largest, v);
}

void add_bar(MapFigure& figure, const Map& map, const Palette& palette) {
  double smallest = map.shading.high, largest = map.shading.low;
  widen(smallest, largest, map);
  const Area& p = figure.picture;
  const DisplayList bar = bar_figure(map.shading, smallest, largest, std::max(p.width - 1, 64.0), palette);
  append(figure.list, bar, {p.x, p.y + p.height + bar_gap});
  figure.list.height += bar_gap + bar.height;
  figure.list.width = std::max(figure.list.width, p.x + bar.width);
}

/// Draws a map at the origin; color::pooled() pools matrices with more cells than pixels.
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
  for (const color::CellLook& look : grid.looks) figure.marks |= look.marks;
  figure.list.width = std::max(grid.picture.x + grid.picture.width, text_width(map.title));
  figure.list.height = grid.picture.y + grid.picture.height;
  if (map.bar) add_bar(figure, map, palette);
  return figure;
}

/// Legend entry: a small cell with a mark, and its meaning.
struct Sample {
  unsigned mark;
  const char* words;
};
constexpr Sample samples[]{{mark::minus_infinity, "−∞"},     {mark::hidden, "masked"},
                           {mark::dropped, "dropped"},       {mark::not_a_number, "not a number (0/0)"},
                           {mark::above, "above the range"}, {mark::below, "below the range"}};

void draw_sample(DisplayList& list, unsigned mark, double x, const Palette& p) {
  constexpr double side = 12;
  const bool plain = mark == mark::not_a_number || mark == mark::minus_infinity;
  const Rgb ground = plain ? p.hatch.ground : color::color_at(color::ColorMap::weights, p.dark, 0),
            ink = color::readable_on(ground);
  list.items.emplace_back(Box{{x, 0, side, side}, ground});
  const auto cross = [&](Rgb ink_of_cross, double thickness) {
    list.items.emplace_back(Lines{
        {{Point{x + 2, 2}, Point{x + side - 2, side - 2}}, {Point{x + 2, side - 2}, Point{x + side - 2, 2}}},
        thickness,
        ink_of_cross});
  };
  if (mark == mark::minus_infinity) list.items.emplace_back(Hatch{{{x, 0, side, side}}, p.hatch.lines});
  if (mark == mark::hidden)
    list.items.emplace_back(Hatch{{{x, 0, side, side}}, color::mix(ink, ground, 0.3f)});
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
std::string unit_note(double unit, bool are_several) {
  const std::string words = "numbers in cells × " + text::unit_words(unit);
  if (!are_several) return words;
  const double least = unit == 0.001 ? 1e-5 : unit;
  return words + " where the largest is from " + text::unit_words(least) + " to " +
         (unit == 0.001 ? "0.01" : text::unit_words(10 * unit));
}

/// Draws the legend, a sample and a few words per entry, in lines no wider than the room.
DisplayList notes_figure(const Notes& notes, const Palette& p, double room) {
  DisplayList list;
  double x = 0, y = 0;
  const auto add = [&](const std::string& words, auto draw_swatch, double swatch) {
    const double width = swatch + text_width(words, 12);
    if (x > 0 && x + width > room) x = 0, y += 20;
    DisplayList part;
    draw_swatch(part);
    part.items.emplace_back(Text{{swatch, 10.5}, Anchor::start, {{words, 12, p.dim}}});
    append(list, part, {x, y});
    x += width + 22;
    list.width = std::max(list.width, x - 22), list.height = y + 14;
  };
  for (const Sample& sample : samples)
    if (notes.marks & sample.mark)
      add(
          sample.words, [&](DisplayList& part) { draw_sample(part, sample.mark, 0, p); }, 18);
  if (notes.by_hand)
    add(
        "switched by hand",
        [&](DisplayList& part) {
          part.items.emplace_back(Box{{3, 3, 6, 6}, p.accent});
        },
        18);
  const auto nothing = [](DisplayList&) {};
  if (notes.block_rows > 1 || notes.block_columns > 1)
    add("1 pixel shows the " + text::joined(notes.pooled_as, " or the ") + " of " +
            to_string(notes.block_rows) + " × " + to_string(notes.block_columns) + " cells",
        nothing, 0);
  if (notes.logarithmic) add("colors follow the logarithm", nothing, 0);
  for (const double unit : notes.units)
    if (unit != 1) add(unit_note(unit, notes.units.size() > 1), nothing, 0);
  return list;
}

constexpr double margin = 20, beside = 40, below = 26;
constexpr double named = 26;  // height of the line with the head above a strip

struct Source {
  const Model& model;
  const Trace& trace;
  const FigureOptions& options;
  const Palette& palette;
};

color::ColorMap map_of(const FigureOptions& options, Coloring coloring) {
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

Range range_of(const Source& s, const StageInfo& stage, std::size_t head) {
  if (s.options.range) return s.options.range(stage.stage, head);
  if (stage.coloring != Coloring::signed_values) return {0, attention::top_of_range(s.model, stage.stage)};
  double largest = 0;
  for (const double v : *s.trace.at(stage.stage, head))
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  return {-largest, largest};
}

/// Returns one range for all heads.
Range common_range(const Source& s, const StageInfo& stage) {
  Range all = range_of(s, stage, 0);
  for (std::size_t h = 1; h < s.model.n_heads; ++h) {
    const Range one = range_of(s, stage, h);
    all.low = std::min(all.low, one.low), all.high = std::max(all.high, one.high);
    all.least = std::min(all.least, one.least);
  }
  return all;
}

std::vector<Run> title(const Source& s, const StageInfo& stage, const std::string& name,
                       const arma::mat& numbers) {
  std::vector<Run> runs{{name, 17, s.palette.text}};
  const std::vector<Run> formula = formula_runs(formula_of(stage, s.model, false), 14, s.palette.dim);
  runs.insert(runs.end(), formula.begin(), formula.end());
  if (!formula.empty()) runs[1].before = 10;
  runs.push_back({text::shape_text(numbers.n_rows, numbers.n_cols), 13, s.palette.faint, true});
  runs.back().before = 10;
  return runs;
}

Map map_of_stage(const Source& s, const StageInfo& stage, std::size_t head, const Range& range) {
  const bool weights = stage.stage == Stage::weights || stage.stage == Stage::dropped_weights ||
                       stage.stage == Stage::zeroed_weights;
  const bool drops = stage.stage == Stage::dropout_mask || stage.stage == Stage::dropped_weights;
  const bool scores = stage.stage == Stage::scores || stage.stage == Stage::scaled_scores;
  const bool of_tokens = stage.columns == Columns::tokens;
  Map map{.matrix = formats::labelled_stage(s.model, s.trace, stage, head, s.options.sequence), .title = {}};
  map.shading = {map_of(s.options, stage.coloring), range.low, range.high, range.least};
  if (weights) map.visible = &static_cast<const arma::mat&>(s.trace.at(Stage::mask));
  if (drops) map.kept = &static_cast<const arma::mat&>(s.trace.at(Stage::dropout_mask, head));
  if (of_tokens && !scores && info(Stage::mask).present(s.model)) map.by_hand = s.model.mask.cells;
  map.tokens_above = of_tokens;
  map.plain_one = stage.coloring != Coloring::signed_values;
  map.numbers = s.options.numbers;
  map.bar = stage.columns != Columns::single;
  return map;
}

DisplayList one_map(const Source& s, const StageInfo& stage, std::size_t head, Notes& notes) {
  Map map = map_of_stage(s, stage, head, range_of(s, stage, head));
  const bool many = stage.per_head && s.model.n_heads > 1;
  map.title =
      title(s, stage, stage.title + (many ? ", head " + to_string(head) : std::string()), map.matrix.numbers);
  const MapFigure figure = map_figure(map, s.palette);
  notes.add(figure, map);
  return figure.list;
}

/// Places maps side by side, row below row.
struct Rows {
  DisplayList& list;
  double x = 0, y = 0, height = 0;

  void next() { x = 0, y += height + below, height = 0; }
  void add(const MapFigure& part) {
    append(list, part.list, {x, y});
    x += part.list.width + beside;
    height = std::max(height, part.list.height);
    list.width = std::max(list.width, x - beside);
  }
};

/// Draws all heads of a stage with a common color range and one bar.
DisplayList all_heads(const Source& s, const StageInfo& stage, Notes& notes) {
  const std::size_t n = s.model.n_heads, columns = n <= 3 ? n : n <= 8 ? (n + 1) / 2 : 4;
  const Range range = common_range(s, stage);
  DisplayList list;
  double smallest = range.high, largest = range.low;
  Rows rows{list, 0, 34};
  for (std::size_t h = 0; h < n; ++h) {
    Map map = map_of_stage(s, stage, h, range);
    if (h == 0)
      list.items.emplace_back(Text{{0, 16}, Anchor::start, title(s, stage, stage.title, map.matrix.numbers)});
    map.title = {{"head " + to_string(h), 14, s.palette.dim}};
    map.room = Room::several_maps, map.bar = false;
    widen(smallest, largest, map);
    const MapFigure part = map_figure(map, s.palette);
    notes.add(part, map);
    if (h > 0 && h % columns == 0) rows.next();
    rows.add(part);
  }
  const DisplayList bar = bar_figure({map_of(s.options, stage.coloring), range.low, range.high, range.least},
                                     smallest, largest, std::min(list.width, 420.0), s.palette);
  append(list, bar, {0, rows.y + rows.height + 18});
  list.height = rows.y + rows.height + 18 + bar.height;
  return list;
}

void draw_arrow(DisplayList& list, Point from, double length, Rgb color) {
  const Point tip{from.x + length, from.y};
  list.items.emplace_back(Lines{{{from, Point{tip.x - 5, tip.y}}}, 1, color});
  list.items.emplace_back(
      Triangles{{{tip, Point{tip.x - 6, tip.y - 3}, Point{tip.x - 6, tip.y + 3}}}, color});
}

/// Draws the stages of one head in four lines, in reading order.
DisplayList strip(const Source& s, std::size_t head, Notes& notes) {
  DisplayList list;
  const bool many = s.model.n_heads > 1;
  Rows rows{list, 0, many ? named : 0};
  if (many)
    list.items.emplace_back(Text{{0, 14}, Anchor::start, {{"head " + to_string(head), 14, s.palette.dim}}});
  int line = 0;
  std::optional<Area> before;  // cells of the previous map in the same line
  for (const StageInfo& stage : attention::stages()) {
    if (!stage.present(s.model)) continue;
    const std::size_t h = stage.per_head ? head : 0;
    Map map = map_of_stage(s, stage, h, range_of(s, stage, h));
    map.title = title(s, stage, stage.title, map.matrix.numbers);
    map.room = Room::several_maps;
    const MapFigure part = map_figure(map, s.palette);
    notes.add(part, map);
    if (stage.line != line) {
      if (line > 0) rows.next();
      line = stage.line, before.reset();
    }
    const bool siblings = stage.stage == Stage::keys || stage.stage == Stage::values;
    const double middle = rows.y + part.picture.y + part.picture.height / 2;
    const double arrow = rows.x - beside + 8;
    rows.add(part);
    if (before && !siblings) draw_arrow(list, {arrow, middle}, beside - 16, s.palette.faint);
    before = part.picture;
  }
  list.height = rows.y + rows.height;
  return list;
}

DisplayList content(const Source& s, Notes& notes) {
  const FigureOptions& o = s.options;
  if (o.head && *o.head >= s.model.n_heads)
    throw Error("head " + to_string(*o.head) + ": the model has " + to_string(s.model.n_heads) +
                " (0 is the first)");
  if (!o.stage) return strip(s, o.head.value_or(0), notes);
  const StageInfo& stage = attention::info(*o.stage);
  if (!stage.present(s.model))
    throw Error(std::string("stage \"") + stage.name + "\": this model does not have it");
  if (!stage.per_head) return one_map(s, stage, 0, notes);
  if (o.head) return one_map(s, stage, *o.head, notes);
  return s.model.n_heads == 1 ? one_map(s, stage, 0, notes) : all_heads(s, stage, notes);
}

std::string words_of(const Model& model, const FigureOptions& o) {
  if (!o.stage) return "Attention, stage by stage, head " + to_string(o.head.value_or(0));
  const StageInfo& stage = attention::info(*o.stage);
  const bool of_head = stage.per_head && model.n_heads > 1;
  return std::string(stage.title) + (!of_head ? "" : o.head ? ", head " + to_string(*o.head) : ", all heads");
}

}  // namespace

DisplayList figure(const Model& model, const Trace& trace, const FigureOptions& options) {
  const Source source{model, trace, options, color::palette(options.dark)};
  Notes notes;
  const DisplayList inner = content(source, notes);
  const DisplayList words = notes_figure(notes, source.palette, std::max(inner.width, 320.0));
  DisplayList whole;
  whole.ground = source.palette.ground.back;
  whole.title = words_of(model, options);
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

}  // namespace core::figures
