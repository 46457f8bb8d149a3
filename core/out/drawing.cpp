#include "core/out/drawing.hpp"

#include <cairo-pdf.h>
#include <cairo.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/packing.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/system/fonts.hpp"

namespace core::figures {

namespace {

constexpr const char *sans_family = "DejaVu Sans", *mono_family = "DejaVu Sans Mono";
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

using Surface = std::unique_ptr<cairo_surface_t, void (*)(cairo_surface_t*)>;

Surface image_surface(double columns, double rows) {
  return {cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(columns), static_cast<int>(rows)),
          cairo_surface_destroy};
}

void require(cairo_status_t status, const char* what) {
  if (status != CAIRO_STATUS_SUCCESS) throw Error(std::string(what) + ": " + cairo_status_to_string(status));
}

cairo_status_t append(void* bytes, const unsigned char* data, unsigned int length) {
  static_cast<std::string*>(bytes)->append(reinterpret_cast<const char*>(data), length);
  return CAIRO_STATUS_SUCCESS;
}

std::string png_of_surface(cairo_surface_t* surface) {
  std::string bytes;
  require(cairo_surface_write_to_png_stream(surface, append, &bytes), "the picture cannot be made");
  return bytes;
}

}  // namespace

std::string png_bytes(std::size_t rows, std::size_t columns, std::span<const color::Rgb> pixels) {
  const Surface surface = image_surface(static_cast<double>(columns), static_cast<double>(rows));
  unsigned char* line = cairo_image_surface_get_data(surface.get());
  const auto stride = static_cast<std::size_t>(cairo_image_surface_get_stride(surface.get()));
  for (std::size_t i = 0; i < rows && line; ++i, line += stride)
    for (std::size_t j = 0; j < columns; ++j) {
      const color::Rgb c = pixels[i * columns + j];
      const std::uint32_t pixel = std::uint32_t{c.r} << 16 | std::uint32_t{c.g} << 8 | c.b;
      std::memcpy(line + 4 * j, &pixel, sizeof pixel);
    }
  if (line) cairo_surface_mark_dirty(surface.get());
  return png_of_surface(surface.get());
}

namespace {

void set_color(cairo_t* c, Rgb color) {
  cairo_set_source_rgb(c, color.r / 255.0, color.g / 255.0, color.b / 255.0);
}

/// Replaces invalid characters: cairo rejects the whole picture because of a single one.
std::string sanitized_text(const std::string& words) {
  std::string text;
  for (const char32_t c : text::decode_utf8_lossy(words))
    text::append_character(text, text::is_noncharacter(c) || c == 0 ? U'\uFFFD' : c);
  return text;
}

/// Font family for each character that DejaVu lacks; "" if no installed font has it.
using FallbackFonts = std::map<char32_t, std::string>;

/// Returns the families for a figure's characters beyond European languages, which DejaVu covers.
FallbackFonts find_fallback_fonts(const DisplayList& figure) {
  constexpr char32_t first_checked = 0x0590;
  std::set<char32_t> characters;
  for (const Item& item : figure.items)
    if (const auto* text = std::get_if<TextLine>(&item))
      for (const FontRun& run : text->runs)
        for (const char32_t c : text::decode_utf8_lossy(run.text))
          if (c >= first_checked) characters.insert(c);
  FallbackFonts fallback_fonts;
  if (characters.empty()) return fallback_fonts;
  for (const char32_t c : characters) fallback_fonts[c] = "";
  for (const fonts::Font& font : fonts::find_covering_fonts(sans_family, characters))
    for (const char32_t c : font.characters) fallback_fonts[c] = font.family;
  std::erase_if(fallback_fonts, [](const auto& each) { return each.second == sans_family; });
  return fallback_fonts;
}

struct CairoPainter {
  cairo_t* c;
  const FallbackFonts& fallback_fonts;

  void operator()(const FilledRect& box) const {
    set_color(c, box.fill);
    cairo_rectangle(c, box.area.x, box.area.y, box.area.width, box.area.height);
    cairo_fill(c);
  }

  void operator()(const HatchedRects& hatch) const {
    cairo_save(c);
    double left = 1e9, top = 1e9, right = -1e9, bottom = -1e9;
    for (const FigureRect& a : hatch.areas) {
      cairo_rectangle(c, a.x, a.y, a.width, a.height);
      left = std::min(left, a.x), top = std::min(top, a.y);
      right = std::max(right, a.x + a.width), bottom = std::max(bottom, a.y + a.height);
    }
    cairo_clip(c);
    // Lines where x + y is a multiple of six, as in the SVG.
    for (double sum = std::floor((left + top) / 6) * 6; sum <= right + bottom; sum += 6) {
      cairo_move_to(c, sum - top, top);
      cairo_line_to(c, sum - bottom, bottom);
    }
    set_color(c, hatch.line);
    cairo_set_line_width(c, 0.8);
    cairo_stroke(c);
    cairo_restore(c);
  }

  void operator()(const LineSegments& lines) const {
    for (const auto& [from, to] : lines.ends) {
      cairo_move_to(c, from.x, from.y);
      cairo_line_to(c, to.x, to.y);
    }
    set_color(c, lines.color);
    cairo_set_line_width(c, lines.thickness);
    cairo_stroke(c);
  }

  void operator()(const Triangles& triangles) const {
    for (const auto& corners : triangles.corners) {
      cairo_move_to(c, corners[0].x, corners[0].y);
      cairo_line_to(c, corners[1].x, corners[1].y);
      cairo_line_to(c, corners[2].x, corners[2].y);
      cairo_close_path(c);
    }
    set_color(c, triangles.fill);
    cairo_fill(c);
  }

  void operator()(const PixelGrid& image) const {
    const double width = image.area.width / static_cast<double>(image.columns),
                 height = image.area.height / static_cast<double>(image.rows);
    cairo_save(c);
    cairo_set_antialias(c, CAIRO_ANTIALIAS_NONE);  // edges between cells stay hard
    for (std::size_t i = 0; i < image.rows; ++i)
      for (std::size_t j = 0; j < image.columns; ++j) {
        set_color(c, image.pixels[i * image.columns + j]);
        cairo_rectangle(c, image.area.x + static_cast<double>(j) * width,
                        image.area.y + static_cast<double>(i) * height, width, height);
        cairo_fill(c);
      }
    cairo_restore(c);
  }

  void operator()(const TextLine& text) const {
    double width = 0;
    for (const FontRun& run : text.runs) width += run.before + draw_run(run, 0, false);
    cairo_save(c);
    cairo_translate(c, text.at.x, text.at.y);
    if (text.is_rotated) cairo_rotate(c, -std::acos(-1.0) / 2);
    double x = text.anchor == Anchor::start ? 0 : text.anchor == Anchor::middle ? -width / 2 : -width;
    for (const FontRun& run : text.runs) {
      x += run.before;
      set_color(c, run.color);
      x += draw_run(run, x, true);
    }
    cairo_restore(c);
  }

 private:
  /// Draws a run from x on, or only measures it; returns its width.
  double draw_run(const FontRun& run, double x, bool is_drawing) const {
    const double from = x;
    std::string left = sanitized_text(run.text);
    while (!left.empty()) {
      const std::size_t size = same_font_length(left);
      const std::string part = left.substr(0, size);
      left.erase(0, size);
      const auto other = fallback_fonts.find(text::first_character(part)->value);
      if (other != fallback_fonts.end() && other->second.empty()) {
        x += draw_missing_glyph(other->first, run, x, is_drawing);
        continue;
      }
      choose_font(other != fallback_fonts.end() ? other->second.c_str()
                  : run.mono                    ? mono_family
                                                : sans_family,
                  run.size);
      cairo_text_extents_t extents;
      cairo_text_extents(c, part.c_str(), &extents);
      if (is_drawing) {
        cairo_move_to(c, x, run.baseline_drop);
        cairo_show_text(c, part.c_str());
      }
      x += extents.x_advance;
    }
    return x - from;
  }

  /// Returns how many bytes at the start one font can draw; a single character if no font has it.
  std::size_t same_font_length(const std::string& words) const {
    std::size_t size = 0;
    std::optional<std::string> family;
    for (std::string_view rest = words; const auto character = text::first_character(rest);) {
      const auto other = fallback_fonts.find(character->value);
      const std::string wanted = other == fallback_fonts.end() ? sans_family : other->second;
      if (family && (*family != wanted || wanted.empty())) break;
      family = wanted;
      size += character->size;
      rest.remove_prefix(character->size);
    }
    return size;
  }

  void choose_font(const char* family, double size) const {
    cairo_select_font_face(c, family, CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(c, size);
  }

  /// Draws a box with the code point of a character that no font has, in two lines; returns its width.
  double draw_missing_glyph(char32_t character, const FontRun& run, double x, bool is_drawing) const {
    if (!is_drawing) return run.size;
    const std::string digits = text::hexadecimal(character, character > 0xffff ? 6 : 4);
    const double line = run.size * 0.42, top = run.baseline_drop - run.size * 0.8;
    cairo_rectangle(c, x + run.size * 0.05, top, run.size * 0.9, run.size * 0.95);
    cairo_set_line_width(c, run.size * 0.04);
    cairo_stroke(c);
    choose_font(mono_family, line * (digits.size() > 4 ? 0.95 : 1.1));
    const std::size_t half = digits.size() / 2;
    for (const auto& [part, y] :
         {std::pair{digits.substr(0, half), top + line}, std::pair{digits.substr(half), top + 2 * line}}) {
      cairo_text_extents_t extents;
      cairo_text_extents(c, part.c_str(), &extents);
      cairo_move_to(c, x + (run.size - extents.x_advance) / 2, y);
      cairo_show_text(c, part.c_str());
    }
    return run.size;
  }
};

void draw_on(cairo_surface_t* surface, const DisplayList& figure, double scale) {
  const std::unique_ptr<cairo_t, void (*)(cairo_t*)> c(cairo_create(surface), cairo_destroy);
  const std::unique_ptr<cairo_font_options_t, void (*)(cairo_font_options_t*)> fonts(
      cairo_font_options_create(), cairo_font_options_destroy);
  cairo_font_options_set_antialias(fonts.get(), CAIRO_ANTIALIAS_GRAY);
  cairo_font_options_set_hint_style(fonts.get(), CAIRO_HINT_STYLE_NONE);
  cairo_font_options_set_hint_metrics(fonts.get(), CAIRO_HINT_METRICS_OFF);
  cairo_set_font_options(c.get(), fonts.get());
  set_color(c.get(), figure.background);
  cairo_paint(c.get());
  cairo_scale(c.get(), scale, scale);
  const FallbackFonts fallback_fonts = find_fallback_fonts(figure);
  for (const Item& item : figure.items) std::visit(CairoPainter{c.get(), fallback_fonts}, item);
  require(cairo_status(c.get()), "the figure cannot be drawn");
}

constexpr double max_pixels = 200e6;

}  // namespace

std::set<char32_t> missing_characters(const DisplayList& figure) {
  std::set<char32_t> missing;
  for (const auto& [character, family] : find_fallback_fonts(figure))
    if (family.empty()) missing.insert(character);
  return missing;
}

std::string render_png(const DisplayList& figure, double scale) {
  if (!(scale >= 0.1 && scale <= 16))
    throw Error("scale: expected a number from 0.1 to 16, got " + text::number_text(scale));
  const double columns = std::ceil(figure.width * scale), rows = std::ceil(figure.height * scale);
  if (columns * rows > max_pixels || columns > 32000 || rows > 32000)
    throw Error("scale: the picture would have " + text::number_text(columns) + " × " +
                text::number_text(rows) +
                " pixels; expected at most 32000 in each direction and 200 million in all");
  const Surface surface = image_surface(columns, rows);
  draw_on(surface.get(), figure, scale);
  return png_of_surface(surface.get());
}

namespace {

constexpr double points_per_pixel = 72.0 / 96;
constexpr double longest_side = 14400;  // limit of PDF readers, in points

}  // namespace

std::string render_pdf(const DisplayList& figure) {
  const double width = figure.width * points_per_pixel, height = figure.height * points_per_pixel;
  if (width > longest_side || height > longest_side)
    throw Error("the figure is too large for a page of PDF: expected at most 19200 pixels in each direction");
  std::string bytes;
  const Surface surface(cairo_pdf_surface_create_for_stream(append, &bytes, width, height),
                        cairo_surface_destroy);
  cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_TITLE, figure.title.c_str());
  cairo_pdf_surface_restrict_to_version(surface.get(), CAIRO_PDF_VERSION_1_4);  // supported by every reader
  // Without the time, the same figure gives the same bytes.
  cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATE_DATE, "");
  draw_on(surface.get(), figure, points_per_pixel);
  cairo_surface_finish(surface.get());
  require(cairo_surface_status(surface.get()), "the figure cannot be written as PDF");
  return bytes;
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
