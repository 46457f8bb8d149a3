#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/base/cell_text.hpp"
#include "core/out/grid.hpp"
#include "core/out/words.hpp"

namespace core::figures {
namespace {

using colour::CellLook;
using colour::Palette;
namespace mark = colour::mark;

constexpr double smallest_mark = 5;  // a cell of fewer pixels has its colour alone
constexpr double number_size = 13, smallest_number_cell_width = 26, smallest_number_cell_height = 15;

/// Items of one colour drawn at once, so that a thousand hatched cells are one item.
struct Marks {
  std::map<std::tuple<int, int, int>, Hatch> hatches;
  std::map<std::tuple<int, int, int>, Lines> crosses;
  Lines nans{{}, 1.2, {}};
  std::vector<Triangles> corners;
};

std::tuple<int, int, int> key(Rgb c) {
  return {c.r, c.g, c.b};
}

/// Adds an area, as a longer one when it goes on from the one before.
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
  const Rgb ink = colour::readable_on(ground);
  if (look.marks & mark::not_a_number) {
    all.nans.colour = p.status.bad;
    all.nans.ends.push_back({Point{area.x, area.y}, Point{area.x + area.width, area.y + area.height}});
    all.nans.ends.push_back({Point{area.x, area.y + area.height}, Point{area.x + area.width, area.y}});
    return;
  }
  const bool hatched = look.marks & (mark::hidden | mark::minus_infinity);
  if (hatched) {
    const Rgb line = look.marks & mark::minus_infinity ? p.hatch.lines : colour::mix(ink, ground, 0.18f);
    Hatch& hatch = all.hatches[key(line)];
    hatch.line = line;
    add_hatch(hatch, area, !grid.separate);
  }
  if (std::min(area.width, area.height) < smallest_mark) return;
  if (look.marks & mark::dropped) {
    const bool small = std::min(area.width, area.height) < 14;
    const Rgb line = small ? colour::mix(ink, ground, 0.45f) : ink;
    Lines& cross = all.crosses[key(line)];
    cross.colour = line, cross.thickness = small ? 0.8 : 1.5;
    cross_dropped(cross, area);
  }
  if (look.marks & (mark::above | mark::below))
    all.corners.push_back(cut_corner(area, look.marks & mark::above, ink));
}

}  // namespace

Rgb ground_of(const Map& map, const CellLook& look, const Palette& palette) {
  if (look.marks & (mark::not_a_number | mark::minus_infinity)) return palette.hatch.ground;
  const colour::Shading& s = map.shading;
  const double place =
      look.marks & mark::dropped ? colour::place_in_range(s.map, s.low, s.high, 0, s.least) : look.place;
  return colour::colour_at(s.map, palette.dark, place);
}

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
          ground = palette.status.bad;  // its cross is not to be seen so small
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
      Rgb ink = colour::readable_on(ground_of(map, look, palette));
      if (std::isnan(v)) ink = palette.status.bad;
      if (std::isinf(v) || look.marks & mark::hidden) ink = palette.faint;
      const Area a = grid.cell(i, j);
      const std::string words = text::cell_text(v, format, map.plain_one);
      const Point middle{a.x + a.width / 2, a.y + a.height / 2};
      if (std::isnan(v)) {  // the cross gives way to the word
        const double half = text_width(words, number_size, true) / 2 + 2;
        list.items.emplace_back(Box{{middle.x - half, middle.y - 7, 2 * half, 14}, palette.hatch.ground});
      }
      list.items.emplace_back(
          Text{{middle.x, middle.y + 0.36 * number_size}, Anchor::middle, {{words, number_size, ink, true}}});
    }
  return format.unit;
}

}  // namespace core::figures
