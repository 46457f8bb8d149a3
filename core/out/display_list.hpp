#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "core/base/rgb.hpp"

/// A figure as a value: shapes and words in the order in which they are drawn, later ones above.
///
/// Lengths are in pixels at scale 1, from the top left corner. Whoever writes a figure draws these and
/// nothing else, so every format shows the same.
namespace core::figures {

using colour::Rgb;

struct Point {
  double x = 0, y = 0;
};
struct Area {
  double x = 0, y = 0, width = 0, height = 0;
};

struct Box {
  Area area;
  Rgb fill;
};

/// 45° lines, one pixel wide and six apart, at places fixed to the figure, so that those of neighbours meet.
struct Hatch {
  std::vector<Area> areas;
  Rgb line;
};

struct Lines {
  std::vector<std::array<Point, 2>> ends;
  double thickness = 1;
  Rgb colour;
};

struct Triangles {
  std::vector<std::array<Point, 3>> corners;
  Rgb fill;
};

/// A grid of colours, each a rectangle with hard edges.
struct Image {
  Area area;
  std::size_t rows = 0, columns = 0;
  std::vector<Rgb> pixels;  ///< rows × columns, row after row
};

/// Words in one font and colour.
struct Run {
  std::string text;  ///< UTF-8
  double size = 14;  ///< the height of the font's em
  Rgb colour;
  bool mono = false;
  double lowered = 0;  ///< below the baseline
  double before = 0;   ///< room before it
};

enum class Anchor { start, middle, end };

/// Runs one after the other, each where the one before ended.
struct Text {
  Point at;  ///< on the baseline, at the anchor
  Anchor anchor = Anchor::start;
  std::vector<Run> runs;
  bool upwards = false;  ///< turned a quarter to the left around its place
};

using Item = std::variant<Box, Hatch, Lines, Triangles, Image, Text>;

struct DisplayList {
  double width = 0, height = 0;
  Rgb ground;
  std::string title;  ///< what the figure shows, in one line
  std::vector<Item> items;
};

}  // namespace core::figures
