#include "tests/support/bare_screen.hpp"

#include "app/theme/imgui_compat.hpp"

namespace support {

void BareScreen::begin_frame(const std::function<void(ImGuiIO&)>& adjust) {
  if (adjust) adjust(ImGui::GetIO());
  ImGui::NewFrame();
  if (has_fonts) return;
  ImFont* f = ImGui::GetFont();
  fonts_.fonts = {f, f, f, f, f, f, f, f, f, f, f, f, f};
}

bool BareScreen::prepare_fonts(float scale) {
  if (!has_fonts || scale == font_scale_) return false;
  fonts_ = app::platform::load_fonts(*ImGui::GetIO().Fonts, font_scale_ = scale, app::platform::Glyphs::all);
  app::platform::follow_first_font();
  for (ImFont* font : ImGui::GetIO().Fonts->Fonts) app::platform::ascent(font);  // makes what comes when used
  return true;
}

void BareScreen::end_frame(app::Rgb, const app::render::Damage::TextureVersion&) {
  ImGui::Render();
}

}  // namespace support
