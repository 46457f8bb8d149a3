#include "app/ui/widgets/text.hpp"

#include <cmath>

namespace app::widgets {

float centred_y(ImFont* font, float top, float height) {
  return std::round(top + (height - font->FontSize) / 2);
}

void draw_text(ImFont* font, ImVec2 pos, Rgb colour, std::string_view text) {
  draw_text(font, pos, Align::left_top, packed(colour), text);
}

void draw_text_right(ImFont* font, float right, float y, Rgb colour, std::string_view text) {
  draw_text(font, {std::floor(right - text_width(font, text)), y}, colour, text);
}

void draw_text_within(ImFont* font, ImVec2 pos, float width, Rgb colour, const std::string& text) {
  const std::string shown = shortened(font, text, width);
  draw_text(font, pos, colour, shown);
  const ImVec2 end(pos.x + width, pos.y + font->FontSize);
  if (shown != text && ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(pos, end))
    ImGui::SetTooltip("%s", text.c_str());
}

void draw_two_lines(ImFont* font, ImVec2 pos, float width, float pitch, Rgb colour, const std::string& text) {
  std::string first = text, second;
  while (text_width(font, first) > width) {
    const std::size_t blank = first.rfind(' ');
    if (blank == std::string::npos) break;
    second = text.substr(blank + 1);
    first.resize(blank);
  }
  draw_text(font, pos, colour, shortened(font, first, width));
  if (!second.empty()) draw_text(font, {pos.x, pos.y + pitch}, colour, shortened(font, second, width));
}

void paragraph(ImFont* font, Rgb colour, float width, std::string_view text) {
  ImGui::PushFont(font);
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
