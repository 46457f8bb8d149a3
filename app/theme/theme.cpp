#include "app/theme/theme.hpp"

#include <algorithm>
#include <cmath>

namespace app {

ImU32 packed(Rgb c, float alpha) {
  return IM_COL32(c.r, c.g, c.b, static_cast<int>(std::lround(alpha * 255)));
}

ImVec4 vec(Rgb c, float alpha) {
  return {c.r / 255.0f, c.g / 255.0f, c.b / 255.0f, alpha};
}

float Metrics::px(float length) const {
  return std::round(length * scale);
}

Metrics metrics(ImVec2 window, float scale) {
  Metrics m;
  m.scale = scale;
  m.compact = window.x < 1400 * scale || window.y < 900 * scale;
  m.narrow = window.x < 1100 * scale;
  m.left = m.px(m.compact ? 256 : 296);
  m.right = m.px(m.compact ? 288 : 332);
  // If the inspector shares the place of EDIT, the view is as wide as in the next larger window, and they
  // get the rest.
  constexpr float narrow_view = 736;
  if (m.narrow) m.right = 0, m.left = std::max(m.left, std::floor(window.x - m.px(narrow_view)));
  m.padding = m.px(m.compact ? 12 : 16), m.center_padding = m.px(m.compact ? 12 : 20);
  m.pitch = m.px(m.compact ? 25 : 29);
  m.menu = m.px(28), m.status = m.px(28), m.tabs = m.px(36) - 1, m.frame = m.px(24);
  return m;
}

float presenting_scale(ImVec2 window) {
  constexpr float usual_height = 1000, steps = 20;  // each step reloads the fonts
  const float scale = 2 * std::min(window.y / usual_height, window.x / 1600);
  return std::clamp(std::round(scale * steps) / steps, 1.0f, 6.0f);
}

void apply_style(const Palette& p, const Metrics& m) {
  ImGuiStyle& s = ImGui::GetStyle();
  s.WindowPadding = {m.px(16), m.px(12)}, s.FramePadding = {m.px(8), m.px(4)};
  s.ItemSpacing = {m.px(8), m.px(5)}, s.ItemInnerSpacing = {m.px(8), m.px(4)}, s.IndentSpacing = m.px(18);
  s.CellPadding = {0, 0};  // Dear ImGui 1.86 reads it once a table, 1.90.1 and later at each row
  s.FrameRounding = s.GrabRounding = s.PopupRounding = m.px(3);
  s.WindowRounding = s.TabRounding = s.ChildRounding = 0;
  s.WindowBorderSize = s.ChildBorderSize = s.FrameBorderSize = s.TabBorderSize = 0;
  s.PopupBorderSize = 1;
  s.ScrollbarSize = m.px(8), s.ScrollbarRounding = m.px(2), s.GrabMinSize = m.px(10);

  ImVec4* c = s.Colors;
  c[ImGuiCol_Text] = vec(p.text), c[ImGuiCol_TextDisabled] = vec(p.faint);
  c[ImGuiCol_WindowBg] = vec(p.background.panel), c[ImGuiCol_ChildBg] = vec(p.background.panel, 0),
  c[ImGuiCol_PopupBg] = vec(p.background.raised);
  c[ImGuiCol_MenuBarBg] = vec(p.background.panel, 0), c[ImGuiCol_Border] = vec(p.strong_line),
  c[ImGuiCol_BorderShadow] = vec(p.background.panel, 0);
  c[ImGuiCol_FrameBg] = c[ImGuiCol_Button] = c[ImGuiCol_Header] = vec(p.control.rest);
  c[ImGuiCol_FrameBgHovered] = c[ImGuiCol_ButtonHovered] = c[ImGuiCol_HeaderHovered] = vec(p.control.hovered);
  c[ImGuiCol_FrameBgActive] = c[ImGuiCol_ButtonActive] = c[ImGuiCol_HeaderActive] = vec(p.control.active);
  c[ImGuiCol_TitleBg] = c[ImGuiCol_TitleBgActive] = c[ImGuiCol_TitleBgCollapsed] = vec(p.background.panel);
  c[ImGuiCol_ScrollbarBg] = vec(p.background.panel, 0), c[ImGuiCol_ScrollbarGrab] = vec(p.control.active);
  c[ImGuiCol_ScrollbarGrabHovered] = c[ImGuiCol_ScrollbarGrabActive] = vec(p.faint);
  c[ImGuiCol_CheckMark] = c[ImGuiCol_SliderGrab] = c[ImGuiCol_SliderGrabActive] = vec(p.accent);
  c[ImGuiCol_Separator] = vec(p.line),
  c[ImGuiCol_SeparatorHovered] = c[ImGuiCol_SeparatorActive] = vec(p.strong_line);
  c[ImGuiCol_TextSelectedBg] = vec(p.accent, 0.35f), c[ImGuiCol_NavHighlight] = vec(p.accent);
  c[ImGuiCol_PlotHistogram] = vec(p.accent), c[ImGuiCol_ModalWindowDimBg] = vec(p.background.back, 0.6f);
}

}  // namespace app
