#pragma once

#include <vector>

#include "app/screen/heatmap_renderer.hpp"
#include "app/screen/window.hpp"
#include "app/theme/theme.hpp"

namespace support {

/// OpenGL context of a hidden window, current from construction to destruction.
class GlContext {
 public:
  GlContext();
  ~GlContext();
  GlContext(const GlContext&) = delete;
  GlContext& operator=(const GlContext&) = delete;

 private:
  app::platform::Display display_;
  GLFWwindow* window_;
};

/// Painted picture read back from the graphics card.
struct Painted {
  int width = 0, height = 0;
  std::vector<app::Rgb> pixels;  ///< top row first
  app::Rgb at(int x, int y) const {
    return pixels.at(static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                     static_cast<std::size_t>(x));
  }
};

/// Paints a picture and reads it back.
Painted painted(app::render::HeatmapRenderer& renderer, const app::render::HeatmapPicture& picture);

/// Returns the largest difference in one channel.
int difference(app::Rgb a, app::Rgb b);

}  // namespace support
