#include "core/out/cairo_drawing.hpp"

#include <cairo.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/base/code_points.hpp"
#include "core/base/error.hpp"
#include "core/base/utf8.hpp"

namespace core::figures {
namespace {

void set_colour(cairo_t* c, Rgb colour) {
  cairo_set_source_rgb(c, colour.r / 255.0, colour.g / 255.0, colour.b / 255.0);
}

/// The text as cairo takes it, which refuses all of a picture for one wrong character.
std::string accepted(const std::string& words) {
  std::string text;
  for (const char32_t c : text::repaired_characters(words))
    text::append_character(text, text::is_noncharacter(c) || c == 0 ? U'\uFFFD' : c);
  return text;
}

struct Painter {
  cairo_t* c;

  void operator()(const Box& box) const {
    set_colour(c, box.fill);
    cairo_rectangle(c, box.area.x, box.area.y, box.area.width, box.area.height);
    cairo_fill(c);
  }

  void operator()(const Hatch& hatch) const {
    cairo_save(c);
    double left = 1e9, top = 1e9, right = -1e9, bottom = -1e9;
    for (const Area& a : hatch.areas) {
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
    set_colour(c, hatch.line);
    cairo_set_line_width(c, 0.8);
    cairo_stroke(c);
    cairo_restore(c);
  }

  void operator()(const Lines& lines) const {
    for (const auto& [from, to] : lines.ends) {
      cairo_move_to(c, from.x, from.y);
      cairo_line_to(c, to.x, to.y);
    }
    set_colour(c, lines.colour);
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
    set_colour(c, triangles.fill);
    cairo_fill(c);
  }

  void operator()(const Image& image) const {
    const double width = image.area.width / static_cast<double>(image.columns),
                 height = image.area.height / static_cast<double>(image.rows);
    cairo_save(c);
    cairo_set_antialias(c, CAIRO_ANTIALIAS_NONE);  // edges between cells stay hard
    for (std::size_t i = 0; i < image.rows; ++i)
      for (std::size_t j = 0; j < image.columns; ++j) {
        set_colour(c, image.pixels[i * image.columns + j]);
        cairo_rectangle(c, image.area.x + static_cast<double>(j) * width,
                        image.area.y + static_cast<double>(i) * height, width, height);
        cairo_fill(c);
      }
    cairo_restore(c);
  }

  void operator()(const Text& text) const {
    double width = 0;
    for (const Run& run : text.runs) width += run.before + advance(run);
    cairo_save(c);
    cairo_translate(c, text.at.x, text.at.y);
    if (text.upwards) cairo_rotate(c, -std::acos(-1.0) / 2);
    double x = text.anchor == Anchor::start ? 0 : text.anchor == Anchor::middle ? -width / 2 : -width;
    for (const Run& run : text.runs) {
      x += run.before;
      const double length = advance(run);
      set_colour(c, run.colour);
      cairo_move_to(c, x, run.lowered);
      cairo_show_text(c, accepted(run.text).c_str());
      x += length;
    }
    cairo_restore(c);
  }

 private:
  /// Chooses the run's font and gives how far the run reaches.
  double advance(const Run& run) const {
    cairo_select_font_face(c, run.mono ? "DejaVu Sans Mono" : "DejaVu Sans", CAIRO_FONT_SLANT_NORMAL,
                           CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(c, run.size);
    cairo_text_extents_t extents;
    cairo_text_extents(c, accepted(run.text).c_str(), &extents);
    return extents.x_advance;
  }
};

}  // namespace

void draw_on(cairo_t* c, const DisplayList& figure, double scale) {
  const std::unique_ptr<cairo_font_options_t, void (*)(cairo_font_options_t*)> fonts(
      cairo_font_options_create(), cairo_font_options_destroy);
  cairo_font_options_set_antialias(fonts.get(), CAIRO_ANTIALIAS_GRAY);
  cairo_font_options_set_hint_style(fonts.get(), CAIRO_HINT_STYLE_NONE);
  cairo_font_options_set_hint_metrics(fonts.get(), CAIRO_HINT_METRICS_OFF);
  cairo_set_font_options(c, fonts.get());
  set_colour(c, figure.ground);
  cairo_paint(c);
  cairo_scale(c, scale, scale);
  for (const Item& item : figure.items) std::visit(Painter{c}, item);
  if (cairo_status(c) != CAIRO_STATUS_SUCCESS)
    throw Error(std::string("the figure cannot be drawn: ") + cairo_status_to_string(cairo_status(c)));
}

}  // namespace core::figures
