#pragma once

#include <imgui.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "app/screen/damage.hpp"
#include "app/screen/fonts.hpp"
#include "app/session/key_press.hpp"
#include "app/theme/theme.hpp"

namespace app::platform {

/// What the loop needs of a window: what happens in it, fonts, and ImGui's frame. Tests have one without a
/// display.
class Screen {
 public:
  virtual ~Screen() = default;

  /// Handles what has happened, waiting up to that many seconds for something to; whether anything did.
  virtual bool wait(double seconds) = 0;
  /// Ends a wait; may be called from any thread.
  virtual void wake() = 0;

  virtual bool should_close() const = 0;
  virtual void cancel_close() = 0;

  /// Begins ImGui's frame. Scripted input is given in adjust, after the devices were read.
  virtual void begin_frame(const std::function<void(ImGuiIO&)>& adjust) = 0;
  /// Draws what differs from the frame before, on the ground color, and shows it; version tells when a
  /// texture's pixels are others.
  virtual void end_frame(Rgb ground, const render::Damage::TextureVersion& version) = 0;
  /// Between frames: sees to the fonts of that scale; whether there are others than before.
  virtual bool prepare_fonts(float scale) = 0;
  /// Whether some glyphs are still missing.
  virtual bool is_loading_fonts() const = 0;
  virtual const LoadedFonts& fonts() const = 0;

  virtual void set_title(const std::string& title) = 0;
  /// The window fills the whole screen, or goes back to where it was.
  virtual void fill_screen(bool) {}
  /// Of the drawing area, in screen coordinates.
  virtual ImVec2 size() const = 0;
  /// Pixels a length of 1 should have on this display, 1 or more.
  virtual float scale() const = 0;

  /// Keys that went down since the last call, as the keyboard's layout names them.
  virtual std::vector<KeyPress> take_keys() = 0;
  /// Files dropped on the window since the last call.
  virtual std::vector<std::filesystem::path> take_dropped_files() = 0;
};

}  // namespace app::platform
