#pragma once

#include <imgui.h>

#include "app/screen/painter.hpp"

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

}  // namespace support
