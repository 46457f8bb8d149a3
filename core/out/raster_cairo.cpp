// Figures in pixels and as PDF, by cairo.
#include <cairo-pdf.h>
#include <cairo.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/out/drawing.hpp"
#include "core/system/fonts.hpp"

namespace core::figures {

namespace {

constexpr const char *sans_family = "DejaVu Sans", *mono_family = "DejaVu Sans Mono";

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

}  // namespace

std::set<char32_t> missing_characters(const DisplayList& figure) {
  std::set<char32_t> missing;
  for (const auto& [character, family] : find_fallback_fonts(figure))
    if (family.empty()) missing.insert(character);
  return missing;
}

std::string render_png(const DisplayList& figure, double scale, const StopToken&) {
  const auto [columns, rows] = picture_size(figure, scale);
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

}  // namespace core::figures
