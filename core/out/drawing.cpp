#include "core/out/drawing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/packing.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"

namespace core::figures {

namespace {

constexpr double mono_width = 0.602;  // of the em, every character
constexpr double subscript_size = 0.76, subscript_drop = 0.24;

// Widths in DejaVu Sans, in thousandths of the em, from space to tilde.
constexpr std::array<short, 95> sans_widths{
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361,  318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635,  611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352,  635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592,  525, 636, 337, 636, 838};

/// Removes and returns the first character, or the bytes of an invalid one, of a non-empty text.
std::string_view next_character(std::string_view& text) {
  std::size_t end = 1;
  while (end < text.size() && !text::is_character_start(text[end])) ++end;
  const std::string_view character = text.substr(0, end);
  text.remove_prefix(end);
  return character;
}

/// Returns the width in thousandths of the em; characters beyond Latin count as wide as Chinese ones.
double sans_width(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1 && first >= ' ' && first <= '~') return sans_widths[first - ' '];
  if (character == "·") return 318;
  if (character.size() == 2) return 650;
  return 1000;
}

}  // namespace

double text_width(std::string_view text, double size, bool mono) {
  double width = 0;
  while (!text.empty())
    width += mono ? (next_character(text), mono_width) : sans_width(next_character(text)) / 1000;
  return width * size;
}

double text_width(const std::vector<FontRun>& runs) {
  double width = 0;
  for (const FontRun& run : runs) width += run.before + text_width(run.text, run.size, run.mono);
  return width;
}

std::string shortened(const std::string& text, double size, double room) {
  double ems = 0;
  std::size_t fits = 0;  // bytes that fit together with "…"
  for (std::string_view left = text; !left.empty() && ems * size <= room;) {
    if (ems * size + size <= room) fits = text.size() - left.size();
    ems += sans_width(next_character(left)) / 1000;
  }
  if (ems * size <= room) return text;
  return text.substr(0, fits) + "…";
}

std::string token_label(std::string_view token) {
  std::string text;
  for (const char32_t c : text::decode_utf8_lossy(token)) {
    if (c == U'\n')
      text += "↵";
    else if (c == U'\t')
      text += "⇥";
    else
      text::append_character(text, text::is_control(c) || text::is_noncharacter(c) ? U'\uFFFD' : c);
  }
  return text;
}

std::vector<FontRun> formula_runs(std::string_view formula, double size, Rgb color) {
  std::vector<FontRun> runs;
  for (const text::FormulaPiece& piece : text::formula_pieces(formula)) {
    FontRun run{std::string(piece.text), size, color};
    if (piece.subscript) run.size = subscript_size * size, run.baseline_drop = subscript_drop * size;
    runs.push_back(run);
  }
  return runs;
}

std::size_t label_step(double cell, double room) {
  std::size_t step = 1;
  if (!(cell > 0)) return std::numeric_limits<std::size_t>::max();  // no label has room
  while (cell * static_cast<double>(step) < room) step *= 2;
  return step;
}

std::string end_text(double value, bool omit_decimals) {
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size >= 1e5 || size < 1e-4) return text::scientific(value);
  if (omit_decimals && value == std::floor(value)) return text::fixed(value, 0);
  return text::fixed(value, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 0.1 ? 2 : 4);
}

namespace {

struct Mover {
  Point by;

  void operator()(Point& p) const { p.x += by.x, p.y += by.y; }
  void operator()(FigureRect& a) const { a.x += by.x, a.y += by.y; }
  void operator()(FilledRect& box) const { (*this)(box.area); }
  void operator()(PixelGrid& image) const { (*this)(image.area); }
  void operator()(TextLine& text) const { (*this)(text.at); }
  void operator()(HatchedRects& hatch) const {
    for (FigureRect& area : hatch.areas) (*this)(area);
  }
  void operator()(LineSegments& lines) const {
    for (auto& ends : lines.ends)
      for (Point& p : ends) (*this)(p);
  }
  void operator()(Triangles& triangles) const {
    for (auto& corners : triangles.corners)
      for (Point& p : corners) (*this)(p);
  }
};

}  // namespace

void append(DisplayList& figure, const DisplayList& part, Point by) {
  for (Item item : part.items) {
    std::visit(Mover{by}, item);
    figure.items.push_back(std::move(item));
  }
}

namespace {

/// Formats a number with at most two decimals, without trailing zeros.
std::string number(double value) {
  const double rounded = std::round(value * 100) / 100;
  return text::number_text(rounded == 0 ? 0.0 : rounded);
}

std::string hex(Rgb c) {
  return text::hexadecimal(c.r, 2) + text::hexadecimal(c.g, 2) + text::hexadecimal(c.b, 2);
}

std::string attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + value + "\"";
}

std::string rect_attributes(const FigureRect& a) {
  return attribute("x", number(a.x)) + attribute("y", number(a.y)) + attribute("width", number(a.width)) +
         attribute("height", number(a.height));
}

std::string fill(Rgb color) {
  return attribute("fill", "#" + hex(color));
}

struct SvgWriter {
  std::string& text;

  void operator()(const FilledRect& box) const {
    text += "<rect" + rect_attributes(box.area) + fill(box.fill) + "/>\n";
  }

  void operator()(const HatchedRects& hatch) const {
    std::string path;
    for (const FigureRect& a : hatch.areas)
      path += "M" + number(a.x) + " " + number(a.y) + "h" + number(a.width) + "v" + number(a.height) + "h" +
              number(-a.width) + "z";
    text +=
        "<path" + attribute("d", path) + attribute("fill", "url(#hatch-" + hex(hatch.line) + ")") + "/>\n";
  }

  void operator()(const LineSegments& lines) const {
    std::string path;
    for (const auto& [from, to] : lines.ends)
      path += "M" + number(from.x) + " " + number(from.y) + "L" + number(to.x) + " " + number(to.y);
    text += "<path" + attribute("d", path) + attribute("stroke", "#" + hex(lines.color)) +
            attribute("stroke-width", number(lines.thickness)) + attribute("fill", "none") + "/>\n";
  }

  void operator()(const Triangles& triangles) const {
    std::string path;
    for (const auto& [a, b, c] : triangles.corners)
      path += "M" + number(a.x) + " " + number(a.y) + "L" + number(b.x) + " " + number(b.y) + "L" +
              number(c.x) + " " + number(c.y) + "z";
    text += "<path" + attribute("d", path) + fill(triangles.fill) + "/>\n";
  }

  void operator()(const PixelGrid& image) const {
    text += "<image" + rect_attributes(image.area) +
            " preserveAspectRatio=\"none\" image-rendering=\"optimizeSpeed\"" +
            " style=\"image-rendering:pixelated\" xlink:href=\"data:image/png;base64," +
            packing::base64(png_bytes(image.rows, image.columns, image.pixels)) + "\"/>\n";
  }

  void operator()(const TextLine& t) const {
    constexpr std::array anchors{"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    text += "<text" + attribute("x", number(t.at.x)) + attribute("y", number(t.at.y)) +
            anchors[static_cast<std::size_t>(t.anchor)];
    if (t.is_rotated)
      text += attribute("transform", "rotate(-90 " + number(t.at.x) + " " + number(t.at.y) + ")");
    if (t.runs.size() == 1) {
      text += font_attributes(t.runs.front()) + ">" + xml_escaped(t.runs.front().text);
    } else {
      text += ">";
      double baseline_drop = 0;
      for (const FontRun& run : t.runs) {
        text += "<tspan" + font_attributes(run);
        if (run.before > 0) text += attribute("dx", number(run.before));
        if (run.baseline_drop != baseline_drop)
          text += attribute("dy", number(run.baseline_drop - baseline_drop));
        text += ">" + xml_escaped(run.text) + "</tspan>";
        baseline_drop = run.baseline_drop;
      }
    }
    text += "</text>\n";
  }

 private:
  static std::string font_attributes(const FontRun& run) {
    return attribute("font-size", number(run.size)) + fill(run.color) + (run.mono ? " class=\"m\"" : "");
  }
};

/// Returns a pattern for each color of hatches: lines where x + y is a multiple of six.
std::string patterns(const DisplayList& figure) {
  std::set<std::string> colors;
  for (const Item& item : figure.items)
    if (const auto* hatch = std::get_if<HatchedRects>(&item)) colors.insert(hex(hatch->line));
  std::string text;
  for (const std::string& color : colors)
    text += "<pattern id=\"hatch-" + color + "\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">" +
            "<path d=\"M-1 1L1 -1M-1 7L7 -1M5 7L7 5\" stroke=\"#" + color +
            "\" stroke-width=\"0.8\"/></pattern>\n";
  return text;
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  for (const char32_t c : text::decode_utf8_lossy(text)) {
    const bool known = c >= 0x20 ? c != 0xFFFE && c != 0xFFFF : c == '\t' || c == '\n' || c == '\r';
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        text::append_character(escaped, known ? c : U'\uFFFD');
    }
  }
  return escaped;
}

std::pair<double, double> picture_size(const DisplayList& figure, double scale) {
  constexpr double max_pixels = 200e6;
  if (!(scale >= 0.1 && scale <= 16))
    throw Error("scale: expected a number from 0.1 to 16, got " + text::number_text(scale));
  const double columns = std::ceil(figure.width * scale), rows = std::ceil(figure.height * scale);
  if (columns * rows > max_pixels || columns > 32000 || rows > 32000)
    throw Error("scale: the picture would have " + text::number_text(columns) + " × " +
                text::number_text(rows) +
                " pixels; expected at most 32000 in each direction and 200 million in all");
  return {columns, rows};
}

std::string render_svg(const DisplayList& figure) {
  const std::string width = number(figure.width), height = number(figure.height);
  std::string text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\"";
  text += attribute("width", width) + attribute("height", height) +
          attribute("viewBox", "0 0 " + width + " " + height) +
          " font-family=\"'DejaVu Sans', Verdana, sans-serif\" xml:space=\"preserve\">\n";
  text += "<title>" + xml_escaped(figure.title) + "</title>\n";
  text += "<defs>\n<style>.m { font-family: 'DejaVu Sans Mono', Menlo, Consolas, monospace }</style>\n" +
          patterns(figure) + "</defs>\n";
  text +=
      "<rect" + attribute("width", width) + attribute("height", height) + fill(figure.background) + "/>\n";
  for (const Item& item : figure.items) std::visit(SvgWriter{text}, item);
  return text + "</svg>\n";
}

}  // namespace core::figures
