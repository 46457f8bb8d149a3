#include "tests/support/gl_context.hpp"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

namespace support {

GlContext::~GlContext() {
  glfwDestroyWindow(window_);
}

}  // namespace support
