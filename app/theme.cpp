#include "app/theme.hpp"

#include <cmath>

namespace app {
namespace {

Palette dark_palette() {
  Palette p;
  p.dark = true;
  p.background = rgb(0x121417), p.panel = rgb(0x191c20), p.raised = rgb(0x1f2328);
  p.frame = rgb(0x262b31), p.frame_hovered = rgb(0x30363d), p.frame_active = rgb(0x3a414a);
  p.line = rgb(0x2a2f35), p.strong_line = rgb(0x3a4149);
  p.text = rgb(0xdfe3e7), p.dim = rgb(0x99a1aa), p.faint = rgb(0x747d87);
  p.accent = rgb(0x8fb4d6), p.selection = rgb(0xffffff), p.selection_inner = rgb(0x000000), p.operand = rgb(0xff82b8);
  p.warning = rgb(0xf0c24b), p.bad = rgb(0xff7a6e), p.good = rgb(0x8fcf9a);
  p.hatch = rgb(0x4a515a), p.hatch_ground = rgb(0x191c20);
  p.heads = {rgb(0xe8a33d), rgb(0x5ab4ea), rgb(0x35c293), rgb(0xe9dc5a), rgb(0xe3714a), rgb(0xd487b8), rgb(0x9f92f3), rgb(0xb3bac2)};
  return p;
}

Palette light_palette() {
  Palette p;
  p.dark = false;
  p.background = rgb(0xffffff), p.panel = rgb(0xf4f5f7), p.raised = rgb(0xebedf0);
  p.frame = rgb(0xe4e7eb), p.frame_hovered = rgb(0xd8dce2), p.frame_active = rgb(0xc9cfd7);
  p.line = rgb(0xdadee3), p.strong_line = rgb(0xc0c6ce);
  p.text = rgb(0x1c2127), p.dim = rgb(0x5a636e), p.faint = rgb(0x767f89);
  p.accent = rgb(0x2f6699), p.selection = rgb(0x0a0d10), p.selection_inner = rgb(0xffffff), p.operand = rgb(0xc2136b);
  p.warning = rgb(0x8a6100), p.bad = rgb(0xb3261e), p.good = rgb(0x256b35);
  p.hatch = rgb(0xb4bac2), p.hatch_ground = rgb(0xf4f5f7);
  p.heads = {rgb(0xb06a00), rgb(0x1f78b4), rgb(0x0f8f66), rgb(0x8a7a00), rgb(0xc04a1c), rgb(0xb0467f), rgb(0x6a58c8), rgb(0x5f6873)};
  return p;
}

double linear_light(std::uint8_t channel) {
  const double c = channel / 255.0;
  return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

double luminance(Rgb c) {
  return 0.2126 * linear_light(c.r) + 0.7152 * linear_light(c.g) + 0.0722 * linear_light(c.b);
}

double contrast(Rgb a, Rgb b) {
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

}  // namespace

ImU32 packed(Rgb c, float alpha) {
  return IM_COL32(c.r, c.g, c.b, static_cast<int>(std::lround(alpha * 255)));
}

ImVec4 vec(Rgb c, float alpha) { return {c.r / 255.0f, c.g / 255.0f, c.b / 255.0f, alpha}; }

Rgb mix(Rgb a, Rgb b, float share) {
  const auto channel = [share](std::uint8_t x, std::uint8_t y) {
    return static_cast<std::uint8_t>(std::lround(share * x + (1 - share) * y));
  };
  return {channel(a.r, b.r), channel(a.g, b.g), channel(a.b, b.b)};
}

Rgb readable_on(Rgb ground) {
  constexpr Rgb light = rgb(0xf6f8fa), dark = rgb(0x0c0f12);
  return contrast(light, ground) > contrast(dark, ground) ? light : dark;
}

const Palette& palette(bool dark) {
  static const Palette dark_one = dark_palette(), light_one = light_palette();
  return dark ? dark_one : light_one;
}

float Metrics::px(float length) const { return std::round(length * scale); }

Metrics metrics(ImVec2 window, float scale) {
  Metrics m;
  m.scale = scale;
  m.compact = window.x < 1400 * scale || window.y < 900 * scale;
  m.left = m.px(m.compact ? 256 : 296);
  m.right = m.px(m.compact ? 288 : 332);
  m.padding = m.px(m.compact ? 12 : 16);
  m.pitch = m.px(m.compact ? 26 : 29);
  m.menu = m.px(28), m.status = m.px(28), m.tabs = m.px(36), m.frame = m.px(24);
  return m;
}

void apply_style(const Palette& p, const Metrics& m) {
  ImGuiStyle& s = ImGui::GetStyle();
  s.WindowPadding = {m.px(16), m.px(12)}, s.FramePadding = {m.px(8), m.px(4)};
  s.ItemSpacing = {m.px(8), m.px(5)}, s.ItemInnerSpacing = {m.px(8), m.px(4)}, s.IndentSpacing = m.px(18);
  s.FrameRounding = s.GrabRounding = s.PopupRounding = m.px(3);
  s.WindowRounding = s.TabRounding = s.ChildRounding = 0;
  s.WindowBorderSize = s.ChildBorderSize = s.FrameBorderSize = s.TabBorderSize = 0;
  s.PopupBorderSize = 1;
  s.ScrollbarSize = m.px(8), s.ScrollbarRounding = m.px(2), s.GrabMinSize = m.px(10);

  ImVec4* c = s.Colors;
  c[ImGuiCol_Text] = vec(p.text), c[ImGuiCol_TextDisabled] = vec(p.faint);
  c[ImGuiCol_WindowBg] = vec(p.panel), c[ImGuiCol_ChildBg] = vec(p.panel, 0), c[ImGuiCol_PopupBg] = vec(p.raised);
  c[ImGuiCol_MenuBarBg] = vec(p.panel), c[ImGuiCol_Border] = vec(p.strong_line), c[ImGuiCol_BorderShadow] = vec(p.panel, 0);
  c[ImGuiCol_FrameBg] = c[ImGuiCol_Button] = c[ImGuiCol_Header] = vec(p.frame);
  c[ImGuiCol_FrameBgHovered] = c[ImGuiCol_ButtonHovered] = c[ImGuiCol_HeaderHovered] = vec(p.frame_hovered);
  c[ImGuiCol_FrameBgActive] = c[ImGuiCol_ButtonActive] = c[ImGuiCol_HeaderActive] = vec(p.frame_active);
  c[ImGuiCol_TitleBg] = c[ImGuiCol_TitleBgActive] = c[ImGuiCol_TitleBgCollapsed] = vec(p.panel);
  c[ImGuiCol_ScrollbarBg] = vec(p.panel, 0), c[ImGuiCol_ScrollbarGrab] = vec(p.frame_active);
  c[ImGuiCol_ScrollbarGrabHovered] = c[ImGuiCol_ScrollbarGrabActive] = vec(p.faint);
  c[ImGuiCol_CheckMark] = c[ImGuiCol_SliderGrab] = c[ImGuiCol_SliderGrabActive] = vec(p.accent);
  c[ImGuiCol_Separator] = vec(p.line), c[ImGuiCol_SeparatorHovered] = c[ImGuiCol_SeparatorActive] = vec(p.strong_line);
  c[ImGuiCol_TextSelectedBg] = vec(p.accent, 0.35f), c[ImGuiCol_NavHighlight] = vec(p.accent);
  c[ImGuiCol_PlotHistogram] = vec(p.accent), c[ImGuiCol_ModalWindowDimBg] = vec(p.background, 0.6f);
}

}  // namespace app
