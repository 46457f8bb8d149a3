#include "core/out/pdf.hpp"

#include <cairo-pdf.h>

#include <memory>

#include "core/base/error.hpp"
#include "core/out/cairo_drawing.hpp"

namespace core::figures {
namespace {

constexpr double points_per_pixel = 72.0 / 96;
constexpr double longest_side = 14400;  // that readers of PDF are to take, in points

cairo_status_t append_bytes(void* bytes, const unsigned char* data, unsigned length) {
  static_cast<std::string*>(bytes)->append(reinterpret_cast<const char*>(data), length);
  return CAIRO_STATUS_SUCCESS;
}

}  // namespace

std::string pdf_of(const DisplayList& figure) {
  const double width = figure.width * points_per_pixel, height = figure.height * points_per_pixel;
  if (width > longest_side || height > longest_side)
    throw Error("the figure is too large for a page of PDF: expected at most 19200 pixels in each direction");
  std::string bytes;
  const std::unique_ptr<cairo_surface_t, void (*)(cairo_surface_t*)> surface(
      cairo_pdf_surface_create_for_stream(append_bytes, &bytes, width, height), cairo_surface_destroy);
  cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_TITLE, figure.title.c_str());
  cairo_pdf_surface_restrict_to_version(surface.get(), CAIRO_PDF_VERSION_1_4);  // every reader knows it
  // Without the time, the same figure gives the same bytes.
  cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATE_DATE, "");
  const std::unique_ptr<cairo_t, void (*)(cairo_t*)> c(cairo_create(surface.get()), cairo_destroy);
  draw_on(c.get(), figure, points_per_pixel);
  cairo_surface_finish(surface.get());
  if (cairo_surface_status(surface.get()) != CAIRO_STATUS_SUCCESS)
    throw Error(std::string("the figure cannot be written as PDF: ") +
                cairo_status_to_string(cairo_surface_status(surface.get())));
  return bytes;
}

}  // namespace core::figures
