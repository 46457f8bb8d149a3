#include "core/out/png.hpp"

#include <cairo.h>

#include <cmath>
#include <memory>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/out/cairo_drawing.hpp"
#include "core/out/png_bytes.hpp"

namespace core::figures {
namespace {

constexpr double most_pixels = 200e6;

}  // namespace

std::string png_of(const DisplayList& figure, double scale) {
  if (!(scale >= 0.1 && scale <= 16))
    throw Error("scale: expected a number from 0.1 to 16, got " + text::number_text(scale));
  const double columns = std::ceil(figure.width * scale), rows = std::ceil(figure.height * scale);
  if (columns * rows > most_pixels || columns > 32000 || rows > 32000)
    throw Error("scale: the picture would have " + text::number_text(columns) + " × " +
                text::number_text(rows) +
                " pixels; expected at most 32000 in each direction and 200 million in all");
  const std::unique_ptr<cairo_surface_t, void (*)(cairo_surface_t*)> surface(
      cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(columns), static_cast<int>(rows)),
      cairo_surface_destroy);
  const std::unique_ptr<cairo_t, void (*)(cairo_t*)> owner(cairo_create(surface.get()), cairo_destroy);
  draw_on(owner.get(), figure, scale);
  return png_bytes(surface.get());
}

}  // namespace core::figures
