#pragma once

#include <imgui.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/screen/damage.hpp"
#include "app/screen/display.hpp"
#include "app/screen/fonts.hpp"
#include "app/screen/image.hpp"
#include "app/screen/keys.hpp"
#include "app/screen/screen.hpp"
#include "app/screen/short_presses.hpp"
#include "app/theme/theme.hpp"

namespace app::platform {

/// The program's window with an OpenGL 3.3 context and ImGui in it; used from one thread, except wake().
class Window : public Screen {
 public:
  /// The size is in screen coordinates; fonts for that scale are loaded while the display opens the window.
  /// Throws core::Error when there is no display or no OpenGL 3.3.
  Window(Jobs& jobs, const std::string& title, int width, int height, float font_scale = 1);
  ~Window() override;
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  /// Handles what has happened, waiting up to that many seconds for something to; whether anything did.
  bool wait(double seconds) override;
  /// Ends a wait; may be called from any thread.
  void wake() override;

  bool should_close() const override;
  void request_close();
  void cancel_close() override;

  /// Begins ImGui's frame. Scripted input is given in adjust, after the devices were read.
  void begin_frame(const std::function<void(ImGuiIO&)>& adjust = {}) override;
  /// Draws what differs from the frame before, on the ground color, and shows it; version tells when a
  /// texture's pixels are others.
  void end_frame(Rgb ground, const render::Damage::TextureVersion& version = {}) override;
  void abandon_frame() override;
  /// The last frame as it was drawn.
  Image read_pixels() const;
  /// Between frames: sees to the fonts of that scale; whether there are others than before.
  bool prepare_fonts(float scale) override;
  /// Whether some glyphs are still missing.
  bool is_loading_fonts() const override { return font_loader_.is_loading(); }
  const LoadedFonts& fonts() const override { return font_loader_.fonts(); }
  /// The next frame is drawn as if nothing had been.
  void forget_frame() { damage_.forget(); }

  void set_title(const std::string& title) override;
  void fill_screen(bool on) override;
  /// Of the drawing area, in screen coordinates.
  ImVec2 size() const override;
  /// Pixels a length of 1 should have on this display, 1 or more.
  float scale() const override;

  /// Keys that went down since the last call, as the keyboard's layout names them.
  std::vector<KeyPress> take_keys() override;
  /// Files dropped on the window since the last call.
  std::vector<std::filesystem::path> take_dropped_files() override;

 private:
  struct Input;
  void watch_events();
  void begin_imgui();
  void end_imgui();

  FontLoader font_loader_;
  Display display_;
  GLFWwindow* window_ = nullptr;
  std::optional<render::Canvas> canvas_;  // ends before the context
  std::array<int, 4> place_before_{};     // x, y, width and height, before it filled the screen
  render::Damage damage_;
  Rgb ground_;
  bool had_events_ = true;   // the first frames come without any
  bool is_exposed_ = false;  // the display has lost what it showed
  bool typed_shift_ = false;
  std::vector<KeyPress> keys_;
  ShortPresses short_presses_;
  std::vector<std::filesystem::path> dropped_;
  std::atomic<bool> woken_ = false;
};

}  // namespace app::platform
