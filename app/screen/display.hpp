#pragma once

#include <utility>

struct GLFWwindow;

namespace app::platform {

/// GLFW, from its beginning to its end; one at a time.
class Display {
 public:
  /// Throws core::Error when there is no display to open windows on.
  Display();
  ~Display();
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;

  /// Width and height that the first screen has for windows; 0 × 0 where that is not known.
  std::pair<int, int> room() const;

  /// A window with an OpenGL 3.3 core context, which is made current; the owner destroys it before the
  /// display ends. Throws core::Error when the driver has no such context.
  GLFWwindow* open(const char* title, int width, int height, bool visible) const;
};

}  // namespace app::platform
