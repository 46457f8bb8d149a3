#pragma once

#include <imgui.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "app/screen/screen.hpp"

struct GLFWwindow;

namespace app::platform {

/// Lifetime of GLFW; one at a time.
class Display {
 public:
  /// Throws core::Error when there is no display to open windows on.
  Display();
  ~Display();
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;

  /// Returns the width and height available for windows on the primary screen; 0 × 0 if unknown.
  std::pair<int, int> work_area() const;

  /// Opens a window with an OpenGL 3.3 core context, and makes it current; the caller must destroy it before
  /// the display ends. Throws core::Error when the driver has no such context.
  GLFWwindow* open(const char* title, int width, int height, bool visible) const;
};

/// Keys that were pressed and released between two frames, held down for one frame.
///
/// Dear ImGui before 1.87 has no queue of keys and sees only their state when a frame begins. Keys are
/// indices of ImGuiIO::KeysDown.
class ShortPresses {
 public:
  void press(int key) { pressed_.push_back(key); }
  /// Must be called before ImGui::NewFrame, after the devices were read.
  void apply(ImGuiIO& io);

 private:
  std::vector<int> pressed_;     // since the last frame
  std::vector<int> lengthened_;  // held down in the last frame only by apply()
};

/// Pixels, 4 bytes each (red, green, blue, alpha), top row first.
struct RgbaImage {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgba;
};

/// The program's window with an OpenGL 3.3 context and ImGui in it; used from one thread, except wake().
class Window : public Screen {
 public:
  /// The size is in screen coordinates; fonts for that scale are loaded while the display opens the window.
  /// Throws core::Error when there is no display or no OpenGL 3.3.
  Window(Jobs& jobs, const std::string& title, int width, int height, float font_scale = 1);
  ~Window() override;
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  bool wait(double seconds) override;
  void wake() override;
  bool should_close() const override;
  void request_close();
  void cancel_close() override;

  void begin_frame(const std::function<void(ImGuiIO&)>& adjust = {}) override;
  bool end_frame(Rgb background, const render::Damage::TextureVersion& version = {}) override;
  /// Returns the last frame as it was drawn.
  RgbaImage read_pixels() const;
  /// Makes the next frame draw everything.
  void invalidate_frame() { damage_.invalidate(); }
  bool prepare_fonts(float scale) override;
  bool is_loading_fonts() const override { return font_loader_.is_loading(); }
  const LoadedFonts& fonts() const override { return font_loader_.fonts(); }

  void set_title(const std::string& title) override;
  void set_fullscreen(bool on) override;
  ImVec2 size() const override;
  float scale() const override;
  std::vector<KeyPress> take_keys() override { return std::exchange(keys_, {}); }
  std::vector<std::filesystem::path> take_dropped_files() override { return std::exchange(dropped_, {}); }

 private:
  struct Input;

  FontLoader font_loader_;
  Display display_;
  GLFWwindow* window_ = nullptr;
  std::optional<render::Canvas> canvas_;  // ends before the context
  std::string title_;
  std::array<int, 4> windowed_geometry_{};  // x, y, width and height, before it filled the screen
  render::Damage damage_;
  Rgb background_;
  bool had_events_ = true;   // the first frames come without any
  bool is_exposed_ = false;  // the display lost its content
  bool is_shift_down_ = false;
  std::vector<KeyPress> keys_;
  ShortPresses short_presses_;
  std::vector<std::filesystem::path> dropped_;
  std::atomic<bool> woken_ = false;
};

}  // namespace app::platform
