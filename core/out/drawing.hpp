#pragma once

#include <array>
#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/color.hpp"
#include "core/base/token.hpp"

namespace core::figures {

// A figure as a value: shapes and text in drawing order, later ones on top.
//
// Lengths are in pixels at scale 1, from the top left corner. Each output format draws exactly these items,
// so all formats show the same.

using color::Rgb;

struct Point {
  double x = 0, y = 0;
};
struct FigureRect {
  double x = 0, y = 0, width = 0, height = 0;
};

struct FilledRect {
  FigureRect area;
  Rgb fill;
};

/// 45° lines, one pixel wide and six apart, aligned to the figure so that they continue in the next cell.
struct HatchedRects {
  std::vector<FigureRect> areas;
  Rgb line;
};

struct LineSegments {
  std::vector<std::array<Point, 2>> ends;
  double thickness = 1;
  Rgb color;
};

struct Triangles {
  std::vector<std::array<Point, 3>> corners;
  Rgb fill;
};

/// A grid of colors, each a rectangle with hard edges.
struct PixelGrid {
  FigureRect area;
  std::size_t rows = 0, columns = 0;
  std::vector<Rgb> pixels;  ///< rows × columns, row-major
};

/// Text in one font and color.
struct FontRun {
  std::string text;  ///< UTF-8
  double size = 14;  ///< em size of the font
  Rgb color;
  bool mono = false;
  double baseline_drop = 0;  ///< offset below the baseline
  double before = 0;         ///< space before it
};

enum class Anchor { start, middle, end };

/// Consecutive runs, each starting where the previous one ends.
struct TextLine {
  Point at;  ///< on the baseline, at the anchor
  Anchor anchor = Anchor::start;
  std::vector<FontRun> runs;
  bool is_rotated = false;  ///< rotated by 90° counterclockwise around `at`
};

using Item = std::variant<FilledRect, HatchedRects, LineSegments, Triangles, PixelGrid, TextLine>;

struct DisplayList {
  double width = 0, height = 0;
  Rgb background;
  std::string title;  ///< one-line description
  std::vector<Item> items;
};

/// Estimates the width of a text in DejaVu Sans, or DejaVu Sans Mono; the font of a viewer may differ.
double text_width(std::string_view text, double size, bool mono = false);
double text_width(const std::vector<FontRun>& runs);

/// Returns the text, or its beginning and "…" if it is wider than the room.
std::string shortened(const std::string& text, double size, double room);

/// Replaces line feeds, tabs and other control characters of a token by visible signs.
std::string token_label(std::string_view token);

/// Returns a formula as runs: "W_q" is a W with a subscript q.
std::vector<FontRun> formula_runs(std::string_view formula, double size, Rgb color);

/// Returns the interval of labels, in cells, such that each has room: 1, 2, 4, 8, …
std::size_t label_step(double cell, double room);

/// Returns the label of a color bar's end; whole numbers without decimals if omit_decimals.
std::string end_text(double value, bool omit_decimals);

/// Adds the items of another figure to this one, moved by `by`; the size does not change.
void append(DisplayList& figure, const DisplayList& part, Point by);

/// Returns an image as a PNG file with 8 bits per channel; pixels are rows × columns, row-major, at most
/// 32767 in each direction.
std::string png_bytes(std::size_t rows, std::size_t columns, std::span<const color::Rgb> pixels);

/// Returns the characters of a figure that no installed font has: PNG and PDF show a box with their number.
std::set<char32_t> missing_characters(const DisplayList& figure);

/// Returns the columns and rows of a figure as an image, in whole pixels, enlarged by scale.
///
/// Throws core::Error when the scale is not between 0.1 and 16, or the image would have more than 200 million
/// pixels, or more than 32000 in one direction.
std::pair<double, double> picture_size(const DisplayList& figure, double scale);
/// Returns a figure as a PNG file, enlarged by scale. Throws core::Error as picture_size() does, and
/// core::Stopped.
std::string render_png(const DisplayList& figure, double scale, const StopToken& progress = StopToken());

/// Returns a figure as a PDF file of one page with the size of the figure: a pixel is 1/96 inch.
///
/// Text can be selected. Throws core::Error when the figure is too large or cannot be drawn.
std::string render_pdf(const DisplayList& figure);

/// Returns a figure as SVG 1.1: text can be selected, large grids of cells are embedded PNGs.
///
/// The same figure gives the same bytes. Characters that XML does not allow become U+FFFD.
std::string render_svg(const DisplayList& figure);

/// Escapes text for XML, between tags or in a quoted attribute; invalid UTF-8 becomes U+FFFD.
std::string xml_escaped(std::string_view text);

}  // namespace core::figures
