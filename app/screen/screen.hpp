#pragma once

#include <imgui.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/screen/damage.hpp"
#include "app/screen/fonts.hpp"
#include "app/session/key_press.hpp"
#include "app/theme/theme.hpp"

namespace app::platform {

/// Window as the main loop uses it: events, fonts, and ImGui's frame. Tests have one without a display.
class Screen {
 public:
  virtual ~Screen() = default;

  /// Handles events, waiting up to this many seconds for one; returns whether there was any.
  virtual bool wait(double seconds) = 0;
  /// Ends a wait; may be called from any thread.
  virtual void wake() = 0;

  virtual bool should_close() const = 0;
  virtual void cancel_close() = 0;

  /// Begins ImGui's frame. adjust sets scripted input, after the devices were read.
  virtual void begin_frame(const std::function<void(ImGuiIO&)>& adjust) = 0;
  /// Draws the differences from the previous frame, on the ground color, and shows them; version changes with
  /// a texture's pixels. Returns whether there were any.
  virtual bool end_frame(Rgb background, const render::Damage::TextureVersion& version) = 0;
  /// Updates the fonts for this scale, between frames; returns whether they changed.
  virtual bool prepare_fonts(float scale) = 0;
  /// Returns whether some glyphs are still missing.
  virtual bool is_loading_fonts() const = 0;
  virtual const LoadedFonts& fonts() const = 0;

  virtual void set_title(const std::string& title) = 0;
  /// Makes the window fill the whole screen, or restores its place.
  virtual void set_fullscreen(bool) {}
  /// Returns the size of the drawing area, in screen coordinates.
  virtual ImVec2 size() const = 0;
  /// Returns how many pixels a length of 1 should have on this display, 1 or more.
  virtual float scale() const = 0;

  /// Returns the keys pressed since the last call, by the keyboard layout.
  virtual std::vector<KeyPress> take_keys() = 0;
  /// Returns the files dropped on the window since the last call.
  virtual std::vector<std::filesystem::path> take_dropped_files() = 0;

  /// Returns whether the window is a page in a browser. It has no folders: files are chosen by the browser's
  /// dialog, and leave as downloads; and the browser has keys of its own.
  virtual bool in_browser() const { return false; }
  /// Opens the browser's dialog, from which files arrive as dropped ones do.
  virtual void choose_files() {}
  /// Sets the text of what the window says, for screen readers; only a page can pass it to them.
  virtual void set_description(const std::string& /*text*/) {}
  /// Offers a file as a download.
  virtual void offer_file(const std::string& /*name*/, std::string_view /*bytes*/) {}
};

}  // namespace app::platform
