#include "app/render/surface.hpp"

#include <epoxy/gl.h>

#include <cstddef>

namespace app::render {

void clear_surface(int width, int height, Rgb colour) {
  glViewport(0, 0, width, height);
  const ImVec4 c = vec(colour);
  glClearColor(c.x, c.y, c.z, 1);
  glClear(GL_COLOR_BUFFER_BIT);
}

std::vector<std::uint8_t> read_surface(int width, int height) {
  const auto row = static_cast<std::ptrdiff_t>(width) * 4;
  std::vector<std::uint8_t> upside_down(static_cast<std::size_t>(row) * static_cast<std::size_t>(height));
  glPixelStorei(GL_PACK_ALIGNMENT, 4);
  glReadPixels(0, 0, width, height, GL_RGBA, GL_UNSIGNED_BYTE, upside_down.data());
  std::vector<std::uint8_t> rgba;
  rgba.reserve(upside_down.size());
  for (auto end = upside_down.cend(); end != upside_down.cbegin(); end -= row) rgba.insert(rgba.end(), end - row, end);
  for (std::size_t alpha = 3; alpha < rgba.size(); alpha += 4) rgba[alpha] = 255;
  return rgba;
}

}  // namespace app::render
