#include "app/screen/window.hpp"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#include <backends/imgui_impl_glfw.h>
#include <backends/imgui_impl_opengl3.h>
#if IMGUI_VERSION_NUM < 18700
#include <imgui_internal.h>  // stable in old releases; the public API lacks drawn popups
#endif

#include <algorithm>

#include "app/screen/gl.hpp"
#include "app/screen/keys.hpp"
#include "app/theme/imgui_compat.hpp"
#include "core/base/error.hpp"
#include "core/system/process.hpp"

namespace app::platform {
namespace {

constexpr int min_width = 960, min_height = 600;
constexpr int default_width = 1600, default_height = 1000;

/// Clamps a length from the settings to the room on this screen.
/// @param usual The maximum if the screen's room is unknown (0).
int clamp_to_screen(int length, int smallest, int usual, int work_area) {
  return std::clamp(length, smallest, std::max(smallest, work_area > 0 ? work_area : usual));
}

std::string last_glfw_error() {
  const char* text = nullptr;
  glfwGetError(&text);
  std::string line = text ? text : "no reason given";
  return line.substr(0, line.find('\n'));
}

/// Initializes GLFW on X11 if possible, and returns whether it did: windows on Wayland have no title bar
/// unless another library is installed, and lengths that are not pixels, so that pictures would be enlarged.
bool init_on_x11() {
#ifdef GLFW_PLATFORM
  if (core::system::environment_variable("DISPLAY").empty() || !glfwPlatformSupported(GLFW_PLATFORM_X11))
    return false;
  glfwInitHint(GLFW_PLATFORM, GLFW_PLATFORM_X11);
  const bool begun = glfwInit() == GLFW_TRUE;
  glfwInitHint(GLFW_PLATFORM, GLFW_ANY_PLATFORM);
  return begun;
#else
  return false;
#endif
}

/// Returns the character of a key in the keyboard layout, or 0.
unsigned character_on(int code, int scancode) {
  const char* name = glfwGetKeyName(code, scancode);
  if (!name || name[0] == 0 || name[1] != 0) return code == GLFW_KEY_SPACE ? ' ' : 0;
  return static_cast<unsigned char>(name[0]);
}

/// Returns the key of a GLFW key code that is no character: arrows, F1, Escape …
std::optional<Key> key_of_code(int code) {
  constexpr std::pair<int, Key> keys[]{{GLFW_KEY_ESCAPE, Key::escape},
                                       {GLFW_KEY_ENTER, Key::enter},
                                       {GLFW_KEY_KP_ENTER, Key::enter},
                                       {GLFW_KEY_TAB, Key::tab},
                                       {GLFW_KEY_BACKSPACE, Key::backspace},
                                       {GLFW_KEY_DELETE, Key::delete_},
                                       {GLFW_KEY_HOME, Key::home},
                                       {GLFW_KEY_END, Key::end},
                                       {GLFW_KEY_PAGE_UP, Key::page_up},
                                       {GLFW_KEY_PAGE_DOWN, Key::page_down},
                                       {GLFW_KEY_LEFT, Key::left},
                                       {GLFW_KEY_RIGHT, Key::right},
                                       {GLFW_KEY_UP, Key::up},
                                       {GLFW_KEY_DOWN, Key::down}};
  if (code >= GLFW_KEY_F1 && code <= GLFW_KEY_F12)
    return nth_key(Key::f1, static_cast<unsigned>(code - GLFW_KEY_F1));
  for (const auto& [of, key] : keys)
    if (of == code) return key;
  return std::nullopt;
}

/// Closes popups that are open but not yet drawn, if Escape is down; must be called before ImGui::NewFrame.
///
/// Dear ImGui before 1.87 leaves one frame between closing one menu and drawing the next; Escape in that
/// frame would make it read the window that the next one does not have yet.
void close_undrawn_popups_on_escape() {
#if IMGUI_VERSION_NUM < 18700
  const ImGuiIO& io = ImGui::GetIO();
  const int escape = io.KeyMap[ImGuiKey_Escape];
  if (escape < 0 || !io.KeysDown[escape]) return;
  auto& popups = ImGui::GetCurrentContext()->OpenPopupStack;
  while (!popups.empty() && !popups.back().Window) popups.pop_back();
#endif
}

}  // namespace

void ShortPresses::apply([[maybe_unused]] ImGuiIO& io) {
  [[maybe_unused]] const std::vector<int> pressed = std::exchange(pressed_, {});
#if IMGUI_VERSION_NUM < 18700
  for (const int key : std::exchange(lengthened_, {}))
    if (std::find(pressed.begin(), pressed.end(), key) == pressed.end()) io.KeysDown[key] = false;
  for (const int key : pressed) {
    if (key < 0 || io.KeysDown[key]) continue;
    io.KeysDown[key] = true;
    lengthened_.push_back(key);
  }
#endif
}

Display::Display() {
  if (init_on_x11() || glfwInit() == GLFW_TRUE) return;
  throw core::Error(
      "no display: cannot open a window (is DISPLAY set?); `attnscope export` works without one");
}

Display::~Display() {
  glfwTerminate();
}

std::pair<int, int> Display::work_area() const {
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
    throw core::Error("this display offers no OpenGL 3.3, which the window needs (" + last_glfw_error() +
                      "); `attnscope export` works without one");
  glfwMakeContextCurrent(window);
  return window;
}

/// GLFW's callbacks, which find the window by its user pointer.
struct Window::Input {
  static Window& of(GLFWwindow* w) { return *static_cast<Window*>(glfwGetWindowUserPointer(w)); }

  template <class... Arguments>
  static void event(GLFWwindow* w, Arguments...) {
    of(w).had_events_ = true;
  }

  /// Handles keys that are no characters, and all keys with Ctrl or Alt; character() handles plain
  /// characters.
  static void key(GLFWwindow* w, int code, int scancode, int action, int modifiers) {
    Window& self = of(w);
    self.had_events_ = true;
    self.is_shift_down_ = (modifiers & GLFW_MOD_SHIFT) != 0;
    if (action == GLFW_RELEASE) return;
    if (action == GLFW_PRESS) self.short_presses_.press(code);
    const bool ctrl = (modifiers & GLFW_MOD_CONTROL) != 0, alt = (modifiers & GLFW_MOD_ALT) != 0;
    std::optional<Key> pressed = key_of_code(code);
    if (!pressed && (ctrl || alt)) pressed = key_of_character(character_on(code, scancode));
    if (pressed) self.keys_.push_back({*pressed, ctrl, self.is_shift_down_, alt});
  }

  static void character(GLFWwindow* w, unsigned codepoint) {
    Window& self = of(w);
    self.had_events_ = true;
    if (const auto pressed = key_of_character(codepoint))
      self.keys_.push_back({*pressed, false, self.is_shift_down_, false});
  }

  static void drop(GLFWwindow* w, int count, const char** paths) {
    Window& self = of(w);
    self.had_events_ = true;
    self.dropped_.insert(self.dropped_.end(), paths, paths + count);
  }
};

Window::Window(Jobs& jobs, const std::string& title, int width, int height, float font_scale)
    : font_loader_(jobs, font_scale),
      window_(display_.open(
          title.c_str(), clamp_to_screen(width, min_width, default_width, display_.work_area().first),
          clamp_to_screen(height, min_height, default_height, display_.work_area().second), true)) {
  glfwSetWindowSizeLimits(window_, min_width, min_height, GLFW_DONT_CARE, GLFW_DONT_CARE);
  glfwSwapInterval(1);
  glfwSetWindowUserPointer(window_, this);
  glfwSetKeyCallback(window_, Input::key);
  glfwSetCharCallback(window_, Input::character);
  glfwSetDropCallback(window_, Input::drop);
  glfwSetCursorPosCallback(window_, Input::event);
  glfwSetCursorEnterCallback(window_, Input::event);
  glfwSetMouseButtonCallback(window_, Input::event);
  glfwSetScrollCallback(window_, Input::event);
  glfwSetWindowFocusCallback(window_, Input::event);
  glfwSetFramebufferSizeCallback(window_, Input::event);
  glfwSetWindowContentScaleCallback(window_, Input::event);
  glfwSetWindowCloseCallback(window_, Input::event);
  glfwSetWindowRefreshCallback(
      window_, [](GLFWwindow* w) { Input::of(w).had_events_ = Input::of(w).is_exposed_ = true; });

  IMGUI_CHECKVERSION();
  ImGui::CreateContext(font_loader_.first_atlas());
  ImGui::GetIO().UserData = &font_loader_.characters();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;  // the theme determines the layout, not a file
  io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
  // The backend keeps our callbacks and calls them before its own.
  ImGui_ImplGlfw_InitForOpenGL(window_, true);
  ImGui_ImplOpenGL3_Init(render::glsl_version);
  canvas_.emplace();
}

Window::~Window() {
  canvas_.reset();
  ImGui_ImplOpenGL3_Shutdown();
  ImGui_ImplGlfw_Shutdown();
  font_loader_.stop();
  ImGui::DestroyContext();
  glfwDestroyWindow(window_);
}

bool Window::wait(double seconds) {
  seconds > 0 && !had_events_ ? glfwWaitEventsTimeout(seconds) : glfwPollEvents();
  const bool woken = woken_.exchange(false);
  return std::exchange(had_events_, false) || woken;
}

void Window::wake() {
  woken_ = true;
  glfwPostEmptyEvent();
}

bool Window::should_close() const {
  return glfwWindowShouldClose(window_) != 0;
}
void Window::request_close() {
  glfwSetWindowShouldClose(window_, GLFW_TRUE);
}
void Window::cancel_close() {
  glfwSetWindowShouldClose(window_, GLFW_FALSE);
}

void Window::begin_frame(const std::function<void(ImGuiIO&)>& adjust) {
  ImGui_ImplOpenGL3_NewFrame();
  ImGui_ImplGlfw_NewFrame();
  short_presses_.apply(ImGui::GetIO());
  if (adjust) adjust(ImGui::GetIO());
  close_undrawn_popups_on_escape();
  ImGui::NewFrame();
}

bool Window::end_frame(Rgb background, const render::Damage::TextureVersion& version) {
  ImGui::Render();
  ImDrawData& data = *ImGui::GetDrawData();
  int width = 0, height = 0;
  glfwGetFramebufferSize(window_, &width, &height);
  if (!canvas_->resize(width, height) || std::exchange(background_, background) != background)
    damage_.invalidate();
  const std::vector<render::ScreenRect> areas = damage_.update(data, version);
  if (areas.empty() && !std::exchange(is_exposed_, false)) return false;
  canvas_->draw(data, areas, background);
  glfwSwapBuffers(window_);
  return !areas.empty();
}

RgbaImage Window::read_pixels() const {
  RgbaImage image;
  glfwGetFramebufferSize(window_, &image.width, &image.height);
  image.rgba = canvas_->pixels();
  return image;
}

bool Window::prepare_fonts(float scale) {
  if (!font_loader_.update(scale)) return false;
  use_first_font();
#if IMGUI_VERSION_NUM < 19200
  // Only the texture: the backend of 1.86 would keep using the sizes of deleted buffers, and draw nothing.
  // Before the first frame it has none.
  if (ImGui::GetFrameCount() > 0) {
    ImGui_ImplOpenGL3_DestroyFontsTexture();
    ImGui_ImplOpenGL3_CreateFontsTexture();
  }
#endif
  damage_.invalidate();
  return true;
}

void Window::set_title(const std::string& title) {
  if (title == title_) return;  // X11 tells of a new title, which would be the next event to draw after
  title_ = title;
  glfwSetWindowTitle(window_, title.c_str());
}

void Window::set_fullscreen(bool on) {
  auto& [x, y, width, height] = windowed_geometry_;
  GLFWmonitor* monitor = glfwGetPrimaryMonitor();
  const GLFWvidmode* mode = monitor ? glfwGetVideoMode(monitor) : nullptr;
  if (on && mode) {
    glfwGetWindowPos(window_, &x, &y);
    glfwGetWindowSize(window_, &width, &height);
    glfwSetWindowMonitor(window_, monitor, 0, 0, mode->width, mode->height, mode->refreshRate);
  } else if (!on && glfwGetWindowMonitor(window_)) {
    glfwSetWindowMonitor(window_, nullptr, x, y, width, height, GLFW_DONT_CARE);
  }
  had_events_ = true;
}

ImVec2 Window::size() const {
  int width = 0, height = 0;
  glfwGetWindowSize(window_, &width, &height);
  return {static_cast<float>(width), static_cast<float>(height)};
}

float Window::scale() const {
  float x = 1, y = 1;
  glfwGetWindowContentScale(window_, &x, &y);
  // Where a window's lengths are not pixels, as on Wayland, everything is enlarged already.
  int width = 0, height = 0, pixels = 0;
  glfwGetWindowSize(window_, &width, &height);
  glfwGetFramebufferSize(window_, &pixels, &height);
  const float enlarged = width > 0 ? static_cast<float>(pixels) / static_cast<float>(width) : 1;
  return std::max(1.0f, std::max(x, y) / std::max(1.0f, enlarged));
}

}  // namespace app::platform
