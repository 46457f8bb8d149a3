#include "app/widgets/text.hpp"

#include <cmath>

#include "app/platform/imgui_compat.hpp"

namespace app::widgets {
namespace {

constexpr float subscript_size = 0.76f, subscript_drop = 0.36f;

float width_at(const ImFont* font, float size, std::string_view text) {
  return font->CalcTextSizeA(size, 1e9f, 0, text.data(), text.data() + text.size()).x;
}

std::size_t letter_bytes(std::string_view text) {
  std::size_t n = text.empty() ? 0 : 1;
  while (n < text.size() && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) ++n;
  return n;
}

/// Calls run(text, is_subscript) for each piece of a formula.
template <class Run>
void for_each_run(std::string_view formula, Run run) {
  while (!formula.empty()) {
    const std::size_t mark = formula.find('_');
    if (mark > 0) run(formula.substr(0, mark), false);
    if (mark == formula.npos) return;
    formula.remove_prefix(mark + 1);
    const std::size_t n = letter_bytes(formula);
    if (n > 0) run(formula.substr(0, n), true);
    formula.remove_prefix(n);
  }
}

}  // namespace

float centred_y(const ImFont* font, float top, float height) {
  return std::round(top + (height - platform::font_size(font)) / 2);
}

float text_width(const ImFont* font, std::string_view text) {
  return width_at(font, platform::font_size(font), text);
}

void draw_text(ImFont* font, ImVec2 pos, Rgb colour, std::string_view text) {
  ImGui::GetWindowDrawList()->AddText(font, platform::font_size(font), pos, packed(colour), text.data(),
                                      text.data() + text.size());
}

void draw_text_right(ImFont* font, float right, float y, Rgb colour, std::string_view text) {
  draw_text(font, {std::floor(right - text_width(font, text)), y}, colour, text);
}

float formula_width(const ImFont* font, std::string_view formula) {
  const float size = platform::font_size(font);
  float width = 0;
  for_each_run(formula, [&](std::string_view run, bool subscript) {
    width += width_at(font, subscript ? size * subscript_size : size, run);
  });
  return width;
}

float draw_formula(ImFont* font, ImVec2 pos, Rgb colour, std::string_view formula) {
  const float size = platform::font_size(font);
  float x = pos.x;
  for_each_run(formula, [&](std::string_view run, bool subscript) {
    const float run_size = subscript ? size * subscript_size : size;
    const ImVec2 at(x, pos.y + (subscript ? std::round(size * subscript_drop) : 0));
    ImGui::GetWindowDrawList()->AddText(font, run_size, at, packed(colour), run.data(), run.data() + run.size());
    x += width_at(font, run_size, run);
  });
  return x - pos.x;
}

std::string shortened(const ImFont* font, std::string_view text, float width) {
  if (text_width(font, text) <= width) return std::string(text);
  const float room = width - text_width(font, "…");
  const char* cut = nullptr;
  font->CalcTextSizeA(platform::font_size(font), std::max(room, 1.0f), 0, text.data(), text.data() + text.size(), &cut);
  std::size_t n = cut ? static_cast<std::size_t>(cut - text.data()) : 0;
  if (n > 0 && text_width(font, text.substr(0, n)) > room) n = 0;  // ImGui never cuts before the first letter
  return std::string(text.substr(0, n)) + "…";
}

void draw_text_within(ImFont* font, ImVec2 pos, float width, Rgb colour, const std::string& text) {
  const std::string shown = shortened(font, text, width);
  draw_text(font, pos, colour, shown);
  const ImVec2 end(pos.x + width, pos.y + platform::font_size(font));
  if (shown != text && ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(pos, end)) ImGui::SetTooltip("%s", text.c_str());
}

void paragraph(ImFont* font, Rgb colour, float width, std::string_view text) {
  platform::push_font(font);
  ImGui::PushStyleColor(ImGuiCol_Text, vec(colour));
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + width);
  ImGui::TextUnformatted(text.data(), text.data() + text.size());
  ImGui::PopTextWrapPos();
  ImGui::PopStyleColor();
  ImGui::PopFont();
}

void section_heading(const Frame& frame, float width, const char* name, const std::string& remark) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = frame.metrics.px(24);
  draw_text(frame.fonts.sans13, {at.x, centred_y(frame.fonts.sans13, at.y, height)}, frame.palette.dim, name);
  if (!remark.empty()) {
    const float y = centred_y(frame.fonts.mono13, at.y, height);
    draw_text_right(frame.fonts.mono13, at.x + width, y, frame.palette.faint, remark);
  }
  ImGui::Dummy({width, height});
}

void tooltip(const std::string& text) {
  if (!ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) return;
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(ImGui::GetFontSize() * 24);
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

}  // namespace app::widgets
