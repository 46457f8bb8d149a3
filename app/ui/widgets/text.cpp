#include "app/ui/widgets/text.hpp"

#include <algorithm>
#include <cmath>

#include "app/theme/imgui_compat.hpp"
#include "core/base/utf8.hpp"

namespace app::widgets {

float centred_y(ImFont* font, float top, float height) {
  return std::round(top + (height - platform::font_size(font)) / 2);
}

void draw_text(ImFont* font, ImVec2 pos, Rgb color, std::string_view text) {
  draw_text(font, pos, Align::left_top, packed(color), text);
}

void draw_text_right(ImFont* font, float right, float y, Rgb color, std::string_view text) {
  draw_text(font, {std::floor(right - text_width(font, text)), y}, color, text);
}

void draw_text_within(ImFont* font, ImVec2 pos, float width, Rgb color, const std::string& text) {
  const std::string shown = shortened(font, text, width);
  draw_text(font, pos, color, shown);
  const ImVec2 end(pos.x + width, pos.y + platform::font_size(font));
  if (shown != text && ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(pos, end))
    ImGui::SetTooltip("%s", text.c_str());
}

void draw_two_lines(ImFont* font, ImVec2 pos, float width, float pitch, Rgb color, const std::string& text) {
  std::string first = text, second;
  while (text_width(font, first) > width) {
    const std::size_t blank = first.rfind(' ');
    if (blank == std::string::npos) break;
    second = text.substr(blank + 1);
    first.resize(blank);
  }
  draw_text(font, pos, color, shortened(font, first, width));
  if (!second.empty()) draw_text(font, {pos.x, pos.y + pitch}, color, shortened(font, second, width));
}

namespace {

/// How much of a text stands in one line: whole words, or of a longer one what fits.
std::size_t line_length(ImFont* font, float width, std::string_view text) {
  const std::size_t stop = std::min(text.find('\n'), text.size());
  std::size_t fits = 0;
  for (std::size_t end = 0; end < stop;) {
    end = std::min(text.find(' ', end + 1), stop);
    if (text_width(font, text.substr(0, end)) > width) break;
    fits = end;
  }
  if (fits > 0 || stop == 0) return fits;
  std::size_t letters = 1;  // at least one
  for (std::size_t k = 1; k <= stop; ++k)
    if (k == stop || core::text::starts_character(text[k])) {
      if (text_width(font, text.substr(0, k)) > width && letters > 1) break;
      letters = k;
    }
  return letters;
}

}  // namespace

ImVec2 draw_prose(ImFont* font, ImVec2 pos, float width, Rgb color, std::string_view text) {
  constexpr float pitch_of_size = 1.3f;
  const float pitch = std::round(platform::font_size(font) * pitch_of_size);
  const ImU32 ink = packed(color, ImGui::GetStyle().Alpha);  // lowered inside BeginDisabled
  ImVec2 size{0, 0};
  do {
    const std::size_t length = line_length(font, width, text);
    const std::string_view line = text.substr(0, length);
    draw_text(font, {pos.x, pos.y + size.y + std::floor((pitch - platform::font_size(font)) / 2)},
              Align::left_top, ink, line);
    size = {std::max(size.x, text_width(font, line)), size.y + pitch};
    text.remove_prefix(length);
    if (text.starts_with(' ') || text.starts_with('\n')) text.remove_prefix(1);
  } while (!text.empty());
  return size;
}

void paragraph(ImFont* font, Rgb color, float width, std::string_view text) {
  ImGui::Dummy(draw_prose(font, ImGui::GetCursorScreenPos(), width, color, text));
}

void section_heading(const Frame& frame, float width, const char* name, const std::string& remark) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = frame.metrics.px(20), line = frame.metrics.px(14);
  draw_text(frame.fonts.sans13, {at.x, centred_y(frame.fonts.sans13, at.y, line)}, frame.palette.dim, name);
  if (!remark.empty()) {
    const float y = centred_y(frame.fonts.mono13, at.y, line);
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
