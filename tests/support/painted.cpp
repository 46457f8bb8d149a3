#include "tests/support/painted.hpp"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#include <epoxy/gl.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "app/theme/imgui_compat.hpp"
#include "tests/support/imgui_input.hpp"
#include "tests/support/loaded_drivers.hpp"

namespace support {

Painted painted(app::render::HeatmapRenderer& renderer, const app::render::HeatmapPicture& picture) {
  glBindTexture(GL_TEXTURE_2D, support::texture_name(renderer.paint(picture)));
  Painted result;
  glGetTexLevelParameteriv(GL_TEXTURE_2D, 0, GL_TEXTURE_WIDTH, &result.width);
  glGetTexLevelParameteriv(GL_TEXTURE_2D, 0, GL_TEXTURE_HEIGHT, &result.height);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(result.width * result.height) * 4);
  glGetTexImage(GL_TEXTURE_2D, 0, GL_RGBA, GL_UNSIGNED_BYTE, bytes.data());
  for (std::size_t i = 0; i < bytes.size(); i += 4)
    result.pixels.push_back({bytes[i], bytes[i + 1], bytes[i + 2]});
  return result;
}

int difference(app::Rgb a, app::Rgb b) {
  return std::max({std::abs(a.r - b.r), std::abs(a.g - b.g), std::abs(a.b - b.b)});
}

GlContext::GlContext() : window_(display_.open("attnscope tests", 64, 64, false)) {
  keep_drivers_loaded();
}

GlContext::~GlContext() {
  glfwDestroyWindow(window_);
}

}  // namespace support
