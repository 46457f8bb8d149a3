// Figures in pixels, by a canvas of the browser. It makes no PDF.
#include <emscripten.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/utf8.hpp"
#include "core/out/drawing.hpp"
#include "core/system/fonts.hpp"

// Colors are 0xRRGGBB. One figure is drawn at a time.
// clang-format off
EM_JS(void, canvas_begin, (int width, int height, double scale, unsigned color), {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d", {alpha: false, willReadFrequently: true});
  if (!context) return;
  context.hex = color => "#" + color.toString(16).padStart(6, "0");
  context.fillStyle = context.hex(color);
  context.fillRect(0, 0, width, height);
  context.scale(scale, scale);
  Module.figure = context;
});
EM_JS(int, canvas_end, (unsigned char* rgba, int width, int height), {
  const context = Module.figure;
  Module.figure = null;
  try {
    HEAPU8.set(context.getImageData(0, 0, width, height).data, rgba);
    return 1;
  } catch {  // it is too large for this browser
    return 0;
  }
});
EM_JS(void, canvas_rect, (double x, double y, double width, double height, unsigned color), {
  Module.figure.fillStyle = Module.figure.hex(color);
  Module.figure.fillRect(x, y, width, height);
});
EM_JS(void, canvas_clip, (const double* rects, int count), {
  const context = Module.figure;
  context.save();
  context.beginPath();
  for (let k = rects >> 3; k < (rects >> 3) + 4 * count; k += 4) context.rect(...HEAPF64.subarray(k, k + 4));
  context.clip();
});
EM_JS(void, canvas_paths, (const double* points, int count, int points_each, unsigned color, double thickness), {
  const context = Module.figure;
  context.beginPath();
  for (let n = 0, k = points >> 3; n < count; n++, k += 2)
    n % points_each ? context.lineTo(HEAPF64[k], HEAPF64[k + 1]) : context.moveTo(HEAPF64[k], HEAPF64[k + 1]);
  context.fillStyle = context.strokeStyle = context.hex(color);
  context.lineWidth = thickness;
  thickness > 0 ? context.stroke() : context.fill();
});
EM_JS(void, canvas_move, (double x, double y, int is_rotated), {
  Module.figure.save();
  Module.figure.translate(x, y);
  if (is_rotated) Module.figure.rotate(-Math.PI / 2);
});
EM_JS(void, canvas_restore, (), { Module.figure.restore(); });
EM_JS(double, canvas_text, (const char* text, double x, double y, double size, int mono, unsigned color, int is_drawing), {
  const context = Module.figure, words = UTF8ToString(text);
  context.font = size + "px 'DejaVu Sans" + (mono ? " Mono'" : "'");
  context.fillStyle = context.hex(color);
  if (is_drawing) context.fillText(words, x, y);
  return context.measureText(words).width;
});
// clang-format on

namespace core::figures {
namespace {

unsigned packed(Rgb c) {
  return unsigned{c.r} << 16 | unsigned{c.g} << 8 | c.b;
}

std::string big_endian(std::size_t number) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift & 255);
  return bytes;
}

std::string png_chunk(const std::string& kind, const std::string& content) {
  const std::string checked = kind + content;
  const auto sum =
      ::crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size()));
  return big_endian(content.size()) + checked + big_endian(sum);
}

/// Returns a PNG of the colors of pixel(row, column).
template <class Pixel>
std::string png_of(std::size_t n_rows, std::size_t n_columns, const Pixel& pixel, const StopToken& progress) {
  z_stream stream{};
  int state = ::deflateInit(&stream, Z_DEFAULT_COMPRESSION);
  const std::unique_ptr<z_stream, decltype(&::deflateEnd)> end(&stream, ::deflateEnd);
  std::string deflated(::deflateBound(&stream, static_cast<uLong>(n_rows * (3 * n_columns + 1))), '\0');
  stream.next_out = reinterpret_cast<Bytef*>(deflated.data());
  stream.avail_out = static_cast<uInt>(deflated.size());
  for (std::size_t i = 0; i < n_rows && state == Z_OK; ++i) {
    progress.add(0);
    std::string line(1, '\0');  // no filter
    for (std::size_t j = 0; j < n_columns; ++j) {
      const color::Rgb c = pixel(i, j);
      for (const auto part : {c.r, c.g, c.b}) line += static_cast<char>(part);
    }
    stream.next_in = reinterpret_cast<Bytef*>(line.data()), stream.avail_in = static_cast<uInt>(line.size());
    state = ::deflate(&stream, i + 1 < n_rows ? Z_NO_FLUSH : Z_FINISH);
  }
  if (state != Z_STREAM_END) throw Error("the picture cannot be made");
  deflated.resize(stream.total_out);
  const std::string rgb_of_8_bits("\x08\x02\x00\x00\x00", 5);
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", big_endian(n_columns) + big_endian(n_rows) + rgb_of_8_bits) +
         png_chunk("IDAT", deflated) + png_chunk("IEND", "");
}

struct CanvasPainter {
  void operator()(const FilledRect& box) const {
    canvas_rect(box.area.x, box.area.y, box.area.width, box.area.height, packed(box.fill));
  }

  void operator()(const HatchedRects& hatch) const {
    std::vector<double> rects, ends;
    double left = 1e9, top = 1e9, right = -1e9, bottom = -1e9;
    for (const FigureRect& a : hatch.areas) {
      rects.insert(rects.end(), {a.x, a.y, a.width, a.height});
      left = std::min(left, a.x), top = std::min(top, a.y);
      right = std::max(right, a.x + a.width), bottom = std::max(bottom, a.y + a.height);
    }
    // Lines where x + y is a multiple of six, as in the SVG.
    for (double sum = std::floor((left + top) / 6) * 6; sum <= right + bottom; sum += 6)
      ends.insert(ends.end(), {sum - top, top, sum - bottom, bottom});
    canvas_clip(rects.data(), static_cast<int>(hatch.areas.size()));
    draw_paths(ends, 2, hatch.line, 0.8);
    canvas_restore();
  }

  void operator()(const LineSegments& lines) const {
    std::vector<double> ends;
    for (const auto& [from, to] : lines.ends) ends.insert(ends.end(), {from.x, from.y, to.x, to.y});
    draw_paths(ends, 2, lines.color, lines.thickness);
  }

  void operator()(const Triangles& triangles) const {
    std::vector<double> corners;
    for (const auto& each : triangles.corners)
      for (const Point& p : each) corners.insert(corners.end(), {p.x, p.y});
    draw_paths(corners, 3, triangles.fill, 0);
  }

  /// A canvas smooths all edges, so those of cells are moved to whole pixels.
  void operator()(const PixelGrid& image) const {
    const auto pixel = [this](double at) { return std::round(at * scale) / scale; };
    const auto edge = [&](double from, double length, std::size_t k, std::size_t count) {
      return pixel(from + length * static_cast<double>(k) / static_cast<double>(count));
    };
    for (std::size_t i = 0; i < image.rows; ++i)
      for (std::size_t j = 0; j < image.columns; ++j) {
        const double x = edge(image.area.x, image.area.width, j, image.columns),
                     y = edge(image.area.y, image.area.height, i, image.rows);
        canvas_rect(x, y, edge(image.area.x, image.area.width, j + 1, image.columns) - x,
                    edge(image.area.y, image.area.height, i + 1, image.rows) - y,
                    packed(image.pixels[i * image.columns + j]));
      }
  }

  void operator()(const TextLine& text) const {
    double width = 0;
    for (const FontRun& run : text.runs) width += run.before + draw_run(run, 0, false);
    canvas_move(text.at.x, text.at.y, text.is_rotated);
    double x = text.anchor == Anchor::start ? 0 : text.anchor == Anchor::middle ? -width / 2 : -width;
    for (const FontRun& run : text.runs) {
      x += run.before;
      x += draw_run(run, x, true);
    }
    canvas_restore();
  }

  double scale;

 private:
  /// Strokes open paths of so many points each, or fills them if the thickness is 0.
  static void draw_paths(const std::vector<double>& points, int points_each, Rgb color, double thickness) {
    canvas_paths(points.data(), static_cast<int>(points.size() / 2), points_each, packed(color), thickness);
  }
  /// Returns the width of a run.
  static double draw_run(const FontRun& run, double x, bool is_drawing) {
    return canvas_text(run.text.c_str(), x, run.baseline_drop, run.size, run.mono, packed(run.color),
                       is_drawing);
  }
};

}  // namespace

std::string png_bytes(std::size_t n_rows, std::size_t n_columns, std::span<const color::Rgb> pixels) {
  return png_of(
      n_rows, n_columns, [&](std::size_t i, std::size_t j) { return pixels[i * n_columns + j]; },
      StopToken());
}

std::set<char32_t> missing_characters(const DisplayList& figure) {
  std::set<char32_t> missing;
  for (const Item& item : figure.items)
    if (const auto* text = std::get_if<TextLine>(&item))
      for (const FontRun& run : text->runs)
        for (const char32_t c : text::decode_utf8_lossy(run.text)) missing.insert(c);
  for (const fonts::Font& font : fonts::find_covering_fonts("DejaVu Sans", missing))
    for (const char32_t c : font.characters) missing.erase(c);
  return missing;
}

std::string render_png(const DisplayList& figure, double scale, const StopToken& progress) {
  const auto [columns, rows] = picture_size(figure, scale);
  const int width = static_cast<int>(columns), height = static_cast<int>(rows);
  const auto n_columns = static_cast<std::size_t>(width), n_rows = static_cast<std::size_t>(height);
  canvas_begin(width, height, scale, packed(figure.background));
  const CanvasPainter painter{scale};
  for (const Item& item : figure.items) {
    progress.add(0);
    std::visit(painter, item);
  }
  std::vector<unsigned char> rgba(4 * n_rows * n_columns);
  if (!canvas_end(rgba.data(), width, height))
    throw Error("the picture is too large for the canvas of this browser; expected a smaller scale");
  return png_of(
      n_rows, n_columns,
      [&](std::size_t i, std::size_t j) {
        const auto* const at = &rgba[4 * (i * n_columns + j)];
        return color::Rgb{at[0], at[1], at[2]};
      },
      progress);
}

std::string render_pdf(const DisplayList&) {
  throw Error("a page makes no PDF; expected SVG or PNG, or the program for Linux");
}

}  // namespace core::figures
