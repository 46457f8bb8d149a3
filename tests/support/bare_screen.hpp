#pragma once

#include <imgui.h>

#include <map>
#include <optional>
#include <string>

#include "app/screen/painter.hpp"
#include "app/screen/screen.hpp"

namespace support {

/// Dear ImGui context without a window or OpenGL.
class BareImGui {
 public:
  explicit BareImGui(ImVec2 size);
  ~BareImGui();
  BareImGui(const BareImGui&) = delete;
  BareImGui& operator=(const BareImGui&) = delete;
};

/// Painter that gives ImGui a texture that is never drawn.
class NoPainter : public app::render::Painter {
 public:
  ImTextureID paint(const app::render::HeatmapPicture&) override;
};

/// Draws a panel in its own window without decoration.
template <class Draw>
void in_window(const char* name, ImVec2 min, ImVec2 max, const Draw& draw) {
  ImGui::SetNextWindowPos(min);
  ImGui::SetNextWindowSize({max.x - min.x, max.y - min.y});
  ImGui::Begin(name, nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove);
  draw();
  ImGui::End();
}

/// Window without a display, driven only by tests.
class BareScreen : public app::platform::Screen {
 public:
  explicit BareScreen(ImVec2 size) { imgui_.emplace(size); }

  bool wait(double) override { return true; }
  void wake() override {}
  bool should_close() const override { return closes; }
  void cancel_close() override { closes = false; }
  void begin_frame(const std::function<void(ImGuiIO&)>& adjust) override;
  bool end_frame(app::Rgb background, const app::render::Damage::TextureVersion& version) override;
  bool prepare_fonts(float scale) override;
  bool is_loading_fonts() const override { return false; }
  const app::platform::LoadedFonts& fonts() const override { return fonts_; }
  void set_title(const std::string& words) override { title = words; }
  ImVec2 size() const override { return ImGui::GetIO().DisplaySize; }
  float scale() const override { return 1; }
  std::vector<app::KeyPress> take_keys() override { return {}; }
  std::vector<std::filesystem::path> take_dropped_files() override { return std::exchange(dropped, {}); }
  bool in_browser() const override { return is_page; }
  void choose_files() override { ++n_choices; }
  void set_description(const std::string& text) override { description = text; }
  void offer_file(const std::string& name, std::string_view bytes) override { offered[name] = bytes; }

  bool has_fonts = false;                      ///< true: the program's; false: ImGui's own in every size
  bool closes = false;                         ///< the user closes the window
  std::string title;                           ///< last title set
  std::vector<std::filesystem::path> dropped;  ///< files dropped on the window
  bool is_page = false;                        ///< as if it were a page in a browser, whose files are offered
  std::map<std::string, std::string> offered;  ///< bytes, by name
  int n_choices = 0;                           ///< how often the browser's dialog was opened
  std::string description;                     ///< last one set

 private:
  std::optional<BareImGui> imgui_;
  app::platform::LoadedFonts fonts_;
  app::render::Damage damage_;
  float font_scale_ = 0;
};

}  // namespace support
