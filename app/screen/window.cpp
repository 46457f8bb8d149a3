#include "app/screen/window.hpp"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#include <backends/imgui_impl_glfw.h>
#include <backends/imgui_impl_opengl3.h>

#include <algorithm>
#include <utility>

#include "app/screen/undrawn_popups.hpp"
#include "app/theme/imgui_compat.hpp"
#include "core/base/error.hpp"

namespace app::platform {
namespace {

constexpr int smallest_width = 960, smallest_height = 600;
constexpr int usual_width = 1600, usual_height = 1000;

/// A length that settings ask for, which may be those of a larger screen, or of nobody.
int believed(int length, int smallest, int usual, int room) {
  return std::clamp(length, smallest, std::max(usual, room));
}

/// The character that the layout puts on a key, or 0.
unsigned character_on(int code, int scancode) {
  const char* name = glfwGetKeyName(code, scancode);
  if (!name || name[0] == 0 || name[1] != 0) return code == GLFW_KEY_SPACE ? ' ' : 0;
  return static_cast<unsigned char>(name[0]);
}

}  // namespace

/// GLFW's callbacks, which find the window by its user pointer.
struct Window::Input {
  static Window& of(GLFWwindow* w) { return *static_cast<Window*>(glfwGetWindowUserPointer(w)); }

  /// Characters typed plainly come through character(); here are the other keys, and those held with Ctrl or
  /// Alt.
  static void key(GLFWwindow* w, int code, int scancode, int action, int modifiers) {
    Window& self = of(w);
    self.had_events_ = true;
    self.typed_shift_ = (modifiers & GLFW_MOD_SHIFT) != 0;
    if (action == GLFW_RELEASE) return;
    if (action == GLFW_PRESS) self.short_presses_.went_down(code);
    const bool ctrl = (modifiers & GLFW_MOD_CONTROL) != 0, alt = (modifiers & GLFW_MOD_ALT) != 0;
    std::optional<Key> pressed = key_of_code(code);
    if (!pressed && (ctrl || alt)) pressed = key_of_character(character_on(code, scancode));
    if (pressed) self.keys_.push_back({*pressed, ctrl, self.typed_shift_, alt});
  }

  static void character(GLFWwindow* w, unsigned codepoint) {
    Window& self = of(w);
    self.had_events_ = true;
    if (const auto pressed = key_of_character(codepoint))
      self.keys_.push_back({*pressed, false, self.typed_shift_, false});
  }

  static void drop(GLFWwindow* w, int count, const char** paths) {
    Window& self = of(w);
    self.had_events_ = true;
    self.dropped_.insert(self.dropped_.end(), paths, paths + count);
  }
};

Window::Window(Jobs& jobs, const std::string& title, int width, int height, float font_scale)
    : font_loader_(jobs, font_scale),
      window_(display_.open(title.c_str(),
                            believed(width, smallest_width, usual_width, display_.room().first),
                            believed(height, smallest_height, usual_height, display_.room().second), true)) {
  glfwSetWindowSizeLimits(window_, smallest_width, smallest_height, GLFW_DONT_CARE, GLFW_DONT_CARE);
  glfwSwapInterval(1);
  watch_events();
  begin_imgui();
  canvas_.emplace();
}

Window::~Window() {
  canvas_.reset();
  end_imgui();
  glfwDestroyWindow(window_);
}

void Window::begin_imgui() {
  IMGUI_CHECKVERSION();
  ImGui::CreateContext(font_loader_.first_atlas());
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;  // where regions stand is the theme's business, not a file's
  io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
  // The backend keeps our callbacks and calls them before its own.
  ImGui_ImplGlfw_InitForOpenGL(window_, true);
  ImGui_ImplOpenGL3_Init("#version 330 core");
}

void Window::end_imgui() {
  ImGui_ImplOpenGL3_Shutdown();
  ImGui_ImplGlfw_Shutdown();
  font_loader_.stop();
  ImGui::DestroyContext();
}

/// Windows, groups and styles that were begun can be ended only by whoever began them, and ImGui's own way to
/// close what was left open ends the program where its assertions are on: a new context is what every release
/// can do.
void Window::abandon_frame() {
  end_imgui();
  font_loader_.begin_again();
  begin_imgui();
  damage_.forget();
}

void Window::watch_events() {
  glfwSetWindowUserPointer(window_, this);
  glfwSetKeyCallback(window_, Input::key);
  glfwSetCharCallback(window_, Input::character);
  glfwSetDropCallback(window_, Input::drop);
  glfwSetCursorPosCallback(window_, [](GLFWwindow* w, double, double) { Input::of(w).had_events_ = true; });
  glfwSetCursorEnterCallback(window_, [](GLFWwindow* w, int) { Input::of(w).had_events_ = true; });
  glfwSetMouseButtonCallback(window_, [](GLFWwindow* w, int, int, int) { Input::of(w).had_events_ = true; });
  glfwSetScrollCallback(window_, [](GLFWwindow* w, double, double) { Input::of(w).had_events_ = true; });
  glfwSetWindowFocusCallback(window_, [](GLFWwindow* w, int) { Input::of(w).had_events_ = true; });
  glfwSetFramebufferSizeCallback(window_, [](GLFWwindow* w, int, int) { Input::of(w).had_events_ = true; });
  glfwSetWindowRefreshCallback(
      window_, [](GLFWwindow* w) { Input::of(w).had_events_ = Input::of(w).is_exposed_ = true; });
  glfwSetWindowContentScaleCallback(window_,
                                    [](GLFWwindow* w, float, float) { Input::of(w).had_events_ = true; });
  glfwSetWindowCloseCallback(window_, [](GLFWwindow* w) { Input::of(w).had_events_ = true; });
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
  short_presses_.put(ImGui::GetIO());
  if (adjust) adjust(ImGui::GetIO());
  close_undrawn_popups_on_escape();
  ImGui::NewFrame();
}

void Window::end_frame(Rgb ground, const render::Damage::TextureVersion& version) {
  ImGui::Render();
  ImDrawData& data = *ImGui::GetDrawData();
  int width = 0, height = 0;
  glfwGetFramebufferSize(window_, &width, &height);
  if (!canvas_->fit(width, height) || std::exchange(ground_, ground) != ground) damage_.forget();
  const std::vector<render::Area> areas = damage_.renew(data, version);
  if (areas.empty() && !std::exchange(is_exposed_, false)) return;
  if (!areas.empty()) {
    canvas_->begin(areas, data.FramebufferScale.x, ground);
    render::keep_within(data, areas);
    render::turn_over(data);
    ImGui_ImplOpenGL3_RenderDrawData(&data);
  }
  canvas_->put_on_window();
  glfwSwapBuffers(window_);
}

Image Window::read_pixels() const {
  Image image;
  glfwGetFramebufferSize(window_, &image.width, &image.height);
  image.rgba = canvas_->pixels();
  return image;
}

bool Window::prepare_fonts(float scale) {
  if (!font_loader_.follow(scale)) return false;
  follow_first_font();
#if IMGUI_VERSION_NUM < 19200
  // Only the texture: the backend of 1.86 would go on with the sizes of buffers that it has deleted, and draw
  // nothing. Before the first frame it has none.
  if (ImGui::GetFrameCount() > 0) {
    ImGui_ImplOpenGL3_DestroyFontsTexture();
    ImGui_ImplOpenGL3_CreateFontsTexture();
  }
#endif
  damage_.forget();
  return true;
}

void Window::set_title(const std::string& title) {
  glfwSetWindowTitle(window_, title.c_str());
}

void Window::fill_screen(bool on) {
  auto& [x, y, width, height] = place_before_;
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
  // Where a window's lengths are not pixels, as on Wayland, all that is drawn is enlarged already.
  int width = 0, height = 0, pixels = 0;
  glfwGetWindowSize(window_, &width, &height);
  glfwGetFramebufferSize(window_, &pixels, &height);
  const float enlarged = width > 0 ? static_cast<float>(pixels) / static_cast<float>(width) : 1;
  return std::max(1.0f, std::max(x, y) / std::max(1.0f, enlarged));
}

std::vector<KeyPress> Window::take_keys() {
  return std::exchange(keys_, {});
}
std::vector<std::filesystem::path> Window::take_dropped_files() {
  return std::exchange(dropped_, {});
}

}  // namespace app::platform
