#pragma once

#include "app/screen/window.hpp"

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

}  // namespace support
