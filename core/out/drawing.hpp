#pragma once

#include <array>
#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/color.hpp"

namespace core::figures {

// A figure as a value: shapes and words in the order in which they are drawn, later ones above.
//
// Lengths are in pixels at scale 1, from the top left corner. Whoever writes a figure draws these and
// nothing else, so every format shows the same.

using color::Rgb;

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

/// 45° lines, one pixel wide and six apart, at places fixed to the figure, so that they continue in the next
/// cell.
struct Hatch {
  std::vector<Area> areas;
  Rgb line;
};

struct Lines {
  std::vector<std::array<Point, 2>> ends;
  double thickness = 1;
  Rgb color;
};

struct Triangles {
  std::vector<std::array<Point, 3>> corners;
  Rgb fill;
};

/// A grid of colors, each a rectangle with hard edges.
struct Image {
  Area area;
  std::size_t rows = 0, columns = 0;
  std::vector<Rgb> pixels;  ///< rows × columns, row after row
};

/// Words in one font and color.
struct Run {
  std::string text;  ///< UTF-8
  double size = 14;  ///< the height of the font's em
  Rgb color;
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
  bool upwards = false;  ///< rotated by 90° counterclockwise around its place
};

using Item = std::variant<Box, Hatch, Lines, Triangles, Image, Text>;

struct DisplayList {
  double width = 0, height = 0;
  Rgb ground;
  std::string title;  ///< what the figure shows, in one line
  std::vector<Item> items;
};

/// About how wide a text is in DejaVu Sans, or in its monospaced sister; a writer's own font may differ a
/// little.
double text_width(std::string_view text, double size, bool mono = false);
double text_width(const std::vector<Run>& runs);

/// The text, or its beginning and "…" where it is wider than the room.
std::string shortened(const std::string& text, double size, double room);

/// A token as it can be drawn: line feeds, tabs and other control characters by signs that stand for them.
std::string drawable(std::string_view token);

/// A formula as runs: "W_q" is a W with a lowered q.
std::vector<Run> formula_runs(std::string_view formula, double size, Rgb color);

/// Every how many cells there is room for a label: 1, 2, 4, 8, …, as people count on.
std::size_t label_step(double cell, double room);

/// The end of a range as a color bar labels it; a whole number perhaps without decimals.
std::string end_text(double value, bool whole_alone);

/// Puts all that another figure shows into this one, moved by so much; the size stays.
void append(DisplayList& figure, const DisplayList& part, Point by);

/// A picture as a PNG file of 8 bits a channel; pixels are rows × columns, row after row, at most 32767 in
/// each direction.
std::string png_bytes(std::size_t rows, std::size_t columns, std::span<const color::Rgb> pixels);

/// Returns the characters of a figure that no installed font has: PNG and PDF show a box with their number.
std::set<char32_t> missing_characters(const DisplayList& figure);

/// A figure as a PNG file of scale times as many pixels in each direction.
///
/// Throws core::Error when the scale is not between 0.1 and 16, or the picture would have more than 200
/// million pixels.
std::string png_of(const DisplayList& figure, double scale);

/// A figure as a PDF file of one page, which is as large as the figure: a pixel is 1/96 of an inch.
///
/// Words are text that can be selected. Throws core::Error when it cannot be drawn.
std::string pdf_of(const DisplayList& figure);

/// A figure as SVG 1.1: words are text that can be selected, large grids of cells an embedded PNG.
///
/// The same figure gives the same bytes. Characters that XML does not know become U+FFFD.
std::string svg_text(const DisplayList& figure);

/// Text as it may stand in XML, between tags or in a quoted attribute; what is not UTF-8 becomes U+FFFD.
std::string xml_escaped(std::string_view text);

}  // namespace core::figures
