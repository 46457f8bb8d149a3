#include "tests/support/bare_imgui.hpp"

#include "app/theme/imgui_compat.hpp"
#include "tests/support/imgui_input.hpp"

namespace support {

BareImGui::BareImGui(ImVec2 size) {
  ImGui::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.DisplaySize = size;
  // As the window's OpenGL has it: no limit of 65 536 vertices.
  io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
  support::name_keys(io);
#if IMGUI_VERSION_NUM >= 19200
  io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures;
#else
  unsigned char* pixels = nullptr;
  int width = 0, height = 0;
  io.Fonts->GetTexDataAsRGBA32(&pixels, &width, &height);
#endif
}

BareImGui::~BareImGui() {
  ImGui::DestroyContext();
}

ImTextureID NoPainter::paint(const app::render::Picture&) {
  return app::platform::texture_id(1);
}

}  // namespace support
