#include "tests/support/gl_context.hpp"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

#include "tests/support/loaded_drivers.hpp"

namespace support {

GlContext::GlContext() : window_(display_.open("attnscope tests", 64, 64, false)) {
  keep_drivers_loaded();
}

GlContext::~GlContext() {
  glfwDestroyWindow(window_);
}

}  // namespace support
