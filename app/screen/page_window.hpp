#pragma once

#include <imgui.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/screen/keys.hpp"
#include "app/screen/screen.hpp"

namespace app::platform {

/// The canvas of a web page, with WebGL 2 and ImGui in it. It never waits: the page makes a step when there
/// are events, which it passes to the functions below; their lengths are in CSS pixels.
class PageWindow : public Screen {
 public:
  /// Throws core::Error when the browser has no WebGL 2.
  PageWindow(Jobs& jobs, float font_scale);
  ~PageWindow() override;
  PageWindow(const PageWindow&) = delete;
  PageWindow& operator=(const PageWindow&) = delete;

  bool wait(double seconds) override;
  void wake() override;
  bool should_close() const override { return false; }
  void cancel_close() override {}
  void begin_frame(const std::function<void(ImGuiIO&)>& adjust) override;
  bool end_frame(Rgb background, const render::Damage::TextureVersion& version) override;
  bool prepare_fonts(float scale) override;
  bool is_loading_fonts() const override { return font_loader_.is_loading(); }
  const LoadedFonts& fonts() const override { return font_loader_.fonts(); }
  void set_title(const std::string& title) override;
  void set_fullscreen(bool on) override;
  ImVec2 size() const override { return size_; }
  float scale() const override { return pixel_ratio_; }
  std::vector<KeyPress> take_keys() override { return std::exchange(keys_, {}); }
  std::vector<std::filesystem::path> take_dropped_files() override { return std::exchange(dropped_, {}); }

  bool in_browser() const override { return true; }
  void choose_files() override;
  void set_description(const std::string& text) override;
  void offer_file(const std::string& name, std::string_view bytes) override;

  void resize(float width, float height, float pixel_ratio);
  void move_mouse(float x, float y, bool is_touch);
  void leave();
  void press_mouse(int button, bool is_down);
  void turn_wheel(float right, float down);
  /// Turns the wheel with Ctrl held.
  void zoom(float in);
  /// Takes a key that goes down or up; `code` and `name` are KeyboardEvent's code and key. Returns the key as
  /// the program knows it.
  std::optional<KeyPress> press_key(const std::string& code, const std::string& name, bool is_down, bool ctrl,
                                    bool shift, bool alt);
  void type(const std::string& text);
  void focus(bool has_focus);
  void paste(const std::string& text) { clipboard_ = text; }
  void drop(const std::filesystem::path& path);
  int n_frames() const { return ImGui::GetFrameCount(); }
  /// Returns whether the next step has events.
  bool has_events() const { return had_events_; }

 private:
  void add_event() { had_events_ = true; }

  FontLoader font_loader_;
  std::optional<render::Canvas> canvas_;
  render::Damage damage_;
  Rgb background_;
  ImVec2 size_{1280, 800};
  float pixel_ratio_ = 1, zoom_ = 0;
  bool had_events_ = true, is_exposed_ = true;
  double last_frame_ = 0;  // seconds
  ImGuiMouseCursor cursor_ = ImGuiMouseCursor_COUNT;
  std::string title_, description_, clipboard_;
  std::vector<KeyPress> keys_;
  std::vector<std::filesystem::path> dropped_;
};

}  // namespace app::platform
