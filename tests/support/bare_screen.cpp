#include "tests/support/bare_screen.hpp"

#include "app/theme/imgui_compat.hpp"
#include "tests/support/imgui_input.hpp"

namespace support {

BareImGui::BareImGui(ImVec2 size) {
  ImGui::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.DisplaySize = size;
  // Like the window's OpenGL: no limit of 65,536 vertices.
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

ImTextureID NoPainter::paint(const app::render::HeatmapPicture&) {
  return app::platform::texture_id(1);
}

void BareScreen::begin_frame(const std::function<void(ImGuiIO&)>& adjust) {
  if (adjust) adjust(ImGui::GetIO());
  ImGui::NewFrame();
  if (has_fonts) return;
  ImFont* f = ImGui::GetFont();
  fonts_.fonts = {f, f, f, f, f, f, f, f, f, f, f, f, f, f, f};
}

bool BareScreen::prepare_fonts(float scale) {
  if (!has_fonts || scale == font_scale_) return false;
  fonts_ = app::platform::load_fonts(*ImGui::GetIO().Fonts, font_scale_ = scale, app::platform::Glyphs::all);
  app::platform::use_first_font();
  for (ImFont* font : ImGui::GetIO().Fonts->Fonts) app::platform::ascent(font);  // loads lazy glyphs
  return true;
}

bool BareScreen::end_frame(app::Rgb, const app::render::Damage::TextureVersion& version) {
  ImGui::Render();
  return !damage_.update(*ImGui::GetDrawData(), version).empty();
}

}  // namespace support
