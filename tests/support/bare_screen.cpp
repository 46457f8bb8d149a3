#include "tests/support/bare_screen.hpp"

namespace support {

void BareScreen::begin_frame(const std::function<void(ImGuiIO&)>& adjust) {
  if (adjust) adjust(ImGui::GetIO());
  ImGui::NewFrame();
  ImFont* f = ImGui::GetFont();
  fonts_.fonts = {f, f, f, f, f, f, f, f, f, f, f};
}

void BareScreen::end_frame(app::Rgb, const app::render::Damage::TextureVersion&) {
  ImGui::Render();
}

void BareScreen::abandon_frame() {
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  imgui_.reset();
  imgui_.emplace(size);
}

}  // namespace support
