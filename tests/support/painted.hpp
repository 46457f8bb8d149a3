#pragma once

#include <vector>

#include "app/screen/heatmap_renderer.hpp"
#include "app/screen/window.hpp"
#include "app/theme/theme.hpp"

namespace support {

/// A hidden window's OpenGL context, current from its construction to its destruction.
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

/// A painted picture read back from the graphics card.
struct Painted {
  int width = 0, height = 0;
  std::vector<app::Rgb> pixels;  ///< top row first
  app::Rgb at(int x, int y) const {
    return pixels.at(static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                     static_cast<std::size_t>(x));
  }
};

/// Paints and reads back.
Painted painted(app::render::HeatmapRenderer& renderer, const app::render::Picture& picture);

/// The largest difference in one channel.
int difference(app::Rgb a, app::Rgb b);

}  // namespace support
