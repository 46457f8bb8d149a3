#pragma once

#include <imgui.h>

#include <optional>

#include "app/screen/painter.hpp"
#include "app/screen/screen.hpp"

namespace support {

/// Dear ImGui without a window and without OpenGL, for as long as this lives.
class BareImGui {
 public:
  explicit BareImGui(ImVec2 size);
  ~BareImGui();
  BareImGui(const BareImGui&) = delete;
  BareImGui& operator=(const BareImGui&) = delete;
};

/// Gives ImGui a texture that nobody draws.
class NoPainter : public app::render::Painter {
 public:
  ImTextureID paint(const app::render::Picture&) override;
};

/// Draws a panel in a window of its own without any decoration.
template <class Draw>
void in_window(const char* name, ImVec2 min, ImVec2 max, const Draw& draw) {
  ImGui::SetNextWindowPos(min);
  ImGui::SetNextWindowSize({max.x - min.x, max.y - min.y});
  ImGui::Begin(name, nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove);
  draw();
  ImGui::End();
}

/// A window without a display: nothing happens in it but what tests say.
class BareScreen : public app::platform::Screen {
 public:
  explicit BareScreen(ImVec2 size) { imgui_.emplace(size); }

  bool wait(double) override { return true; }
  void wake() override {}
  bool should_close() const override { return closes; }
  void cancel_close() override { closes = false; }
  void begin_frame(const std::function<void(ImGuiIO&)>& adjust) override;
  void end_frame(app::Rgb ground, const app::render::Damage::TextureVersion& version) override;
  bool prepare_fonts(float scale) override;
  bool is_loading_fonts() const override { return false; }
  const app::platform::LoadedFonts& fonts() const override { return fonts_; }
  void set_title(const std::string& words) override { title = words; }
  ImVec2 size() const override { return ImGui::GetIO().DisplaySize; }
  float scale() const override { return 1; }
  std::vector<app::KeyPress> take_keys() override { return {}; }
  std::vector<std::filesystem::path> take_dropped_files() override { return std::exchange(dropped, {}); }

  bool has_fonts = false;                      ///< the program's, else ImGui's own in every size
  bool closes = false;                         ///< the window is asked to close
  std::string title;                           ///< the last one
  std::vector<std::filesystem::path> dropped;  ///< files that fall on the window

 private:
  std::optional<BareImGui> imgui_;
  app::platform::LoadedFonts fonts_;
  float font_scale_ = 0;
};

}  // namespace support
