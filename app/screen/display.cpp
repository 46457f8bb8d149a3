#include "app/screen/display.hpp"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

#include <cstdlib>
#include <string>

#include "core/base/error.hpp"

namespace app::platform {
namespace {

std::string last_complaint() {
  const char* text = nullptr;
  glfwGetError(&text);
  std::string line = text ? text : "no reason given";
  return line.substr(0, line.find('\n'));
}

/// Where both are offered, X11: a window of Wayland has no title bar unless another library is installed, and
/// its lengths are not pixels, so that pictures would be enlarged.
bool begins_on_x11() {
#ifdef GLFW_PLATFORM
  const char* display = std::getenv("DISPLAY");
  if (!display || !*display || !glfwPlatformSupported(GLFW_PLATFORM_X11)) return false;
  glfwInitHint(GLFW_PLATFORM, GLFW_PLATFORM_X11);
  const bool begun = glfwInit() == GLFW_TRUE;
  glfwInitHint(GLFW_PLATFORM, GLFW_ANY_PLATFORM);
  return begun;
#else
  return false;
#endif
}

}  // namespace

Display::Display() {
  if (begins_on_x11() || glfwInit() == GLFW_TRUE) return;
  throw core::Error(
      "no display: cannot open a window (is DISPLAY set?); `attnscope export` works without one");
}

Display::~Display() {
  glfwTerminate();
}

std::pair<int, int> Display::room() const {
  int x = 0, y = 0, width = 0, height = 0;
  if (GLFWmonitor* monitor = glfwGetPrimaryMonitor())
    glfwGetMonitorWorkarea(monitor, &x, &y, &width, &height);
  return {width, height};
}

GLFWwindow* Display::open(const char* title, int width, int height, bool visible) const {
  glfwDefaultWindowHints();
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  glfwWindowHint(GLFW_OPENGL_FORWARD_COMPAT, GLFW_TRUE);
  glfwWindowHint(GLFW_DEPTH_BITS, 0);
  glfwWindowHint(GLFW_STENCIL_BITS, 0);
  glfwWindowHint(GLFW_VISIBLE, visible ? GLFW_TRUE : GLFW_FALSE);
  glfwWindowHintString(GLFW_X11_CLASS_NAME, "attnscope");
  glfwWindowHintString(GLFW_X11_INSTANCE_NAME, "attnscope");
#ifdef GLFW_WAYLAND_APP_ID
  glfwWindowHintString(GLFW_WAYLAND_APP_ID, "attnscope");
#endif
  GLFWwindow* window = glfwCreateWindow(width, height, title, nullptr, nullptr);
  if (!window)
    throw core::Error("this display offers no OpenGL 3.3, which the window needs (" + last_complaint() +
                      "); `attnscope export` works without one");
  glfwMakeContextCurrent(window);
  return window;
}

}  // namespace app::platform
