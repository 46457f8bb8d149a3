#include "core/out/png_bytes.hpp"

#include <cairo.h>

#include <cstdint>
#include <cstring>
#include <memory>

#include "core/base/error.hpp"

namespace core::figures {
namespace {

cairo_status_t append(void* bytes, const unsigned char* data, unsigned int length) {
  try {
    static_cast<std::string*>(bytes)->append(reinterpret_cast<const char*>(data), length);
    return CAIRO_STATUS_SUCCESS;
  } catch (...) {  // an exception must not pass through cairo
    return CAIRO_STATUS_NO_MEMORY;
  }
}

}  // namespace

std::string png_bytes(cairo_surface_t* surface) {
  std::string bytes;
  const cairo_status_t status = cairo_surface_write_to_png_stream(surface, append, &bytes);
  if (status == CAIRO_STATUS_NO_MEMORY) throw std::bad_alloc();
  if (status != CAIRO_STATUS_SUCCESS)
    throw Error(std::string("the picture cannot be made: ") + cairo_status_to_string(status));
  return bytes;
}

std::string png_bytes(std::size_t rows, std::size_t columns, std::span<const colour::Rgb> pixels) {
  const std::unique_ptr<cairo_surface_t, void (*)(cairo_surface_t*)> surface(
      cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(columns), static_cast<int>(rows)),
      cairo_surface_destroy);
  if (unsigned char* line = cairo_image_surface_get_data(surface.get())) {
    const auto stride = static_cast<std::size_t>(cairo_image_surface_get_stride(surface.get()));
    for (std::size_t i = 0; i < rows; ++i, line += stride)
      for (std::size_t j = 0; j < columns; ++j) {
        const colour::Rgb c = pixels[i * columns + j];
        const std::uint32_t pixel = std::uint32_t{c.r} << 16 | std::uint32_t{c.g} << 8 | c.b;
        std::memcpy(line + 4 * j, &pixel, sizeof pixel);
      }
    cairo_surface_mark_dirty(surface.get());
  }
  return png_bytes(surface.get());
}

}  // namespace core::figures
