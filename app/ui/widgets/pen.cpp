#include "app/ui/widgets/pen.hpp"

#include <algorithm>
#include <cmath>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/glossed_text.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/number_text.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::widgets {

std::string inspected(double value) {
  const double size = std::abs(value);
  if (value == 0) return "0";
  const bool told = !std::isfinite(value) || (size < 1e5 && size >= 5e-5);
  return told ? fixed(value, 4) : scientific(value);
}

bool link(const Frame& frame, const std::string& name, ImFont* font, ImVec2 at, Align align, Rgb color,
          const std::string& text) {
  const float width = text_width(font, text), half = std::round(platform::font_size(font) * 0.6f);
  const float left = align == Align::right_middle ? at.x - width
                     : align == Align::middle     ? at.x - width / 2
                                                  : at.x;
  const ImVec2 min{std::round(left), std::round(at.y) - half};
  platform::move_to(min);
  const bool pressed = hit_area(name.c_str(), {width, 2 * half});
  frame.landmarks.mark_item(name);
  const bool focused = ImGui::IsItemFocused() && ImGui::GetIO().NavVisible;
  draw_text(font, at, align, packed(color), text);
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (ImGui::IsItemHovered()) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    list->AddRectFilled({min.x, min.y + 2 * half - 1}, {min.x + std::round(width), min.y + 2 * half},
                        packed(color));
  }
  if (focused)
    outline(list, {min.x - 3, min.y - 1}, {min.x + width + 3, min.y + 2 * half + 1},
            packed(frame.palette.accent), 2);
  return pressed;
}

void Pen::rule() {
  skip(10);
  ImGui::GetWindowDrawList()->AddRectFilled({left, std::round(y)}, {right, std::round(y) + 1},
                                            packed(frame.palette.line));
  skip(12);
}

void Pen::heading(const std::string& words) {
  skip(8);
  draw_text(frame.fonts.sans16, {left, y}, Align::left_middle, packed(frame.palette.text),
            shortened(frame.fonts.sans16, words, right - left));
  skip(14);
}

void Pen::pair(const std::string& words, const std::string& number) {
  skip(10);
  const float room = right - left - text_width(frame.fonts.mono14, number) - frame.metrics.px(8);
  glossed_line(frame, frame.fonts.sans14, frame.palette.dim, {left, y},
               shortened(frame.fonts.sans14, words, room));
  draw_text(frame.fonts.mono14, {right, y}, Align::right_middle, packed(frame.palette.text), number);
  skip(10);
}

bool Pen::linked_pair(const std::string& name, const std::string& words, const std::string& number) {
  skip(10);
  const float room = right - left - text_width(frame.fonts.mono14, number) - frame.metrics.px(8);
  draw_text(frame.fonts.sans14, {left, y}, Align::left_middle, packed(frame.palette.dim),
            shortened(frame.fonts.sans14, words, room));
  const bool pressed =
      link(frame, name, frame.fonts.mono14, {right, y}, Align::right_middle, frame.palette.operand, number);
  skip(10);
  return pressed;
}

void Pen::share(const std::string& words, double value, double end) {
  skip(10);
  const float from = left + std::round((right - left) * 0.3f),
              to = right - text_width(frame.fonts.mono14, "−00.0000") - frame.metrics.px(8),
              zero = std::round((from + to) / 2), half = frame.metrics.px(5);
  glossed_line(frame, frame.fonts.sans14, frame.palette.dim, {left, y},
               shortened(frame.fonts.sans14, words, from - left - frame.metrics.px(6)));
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled({from, y - half}, {to, y + half}, packed(frame.palette.control.rest));
  const double part = end > 0 && std::isfinite(value) ? std::clamp(value / end, -1.0, 1.0) : 0;
  const float at = zero + std::round(static_cast<float>(part) * (to - from) / 2);
  list->AddRectFilled(
      {std::min(zero, at), y - half}, {std::max(zero, at), y + half},
      packed(render::color_at(frame.shown.look.colors.diverging, frame.palette.dark, 0.5 + part / 2)));
  list->AddRectFilled({zero, y - half - 2}, {zero + 1, y + half + 2}, packed(frame.palette.faint));
  draw_text(frame.fonts.mono14, {right, y}, Align::right_middle, packed(frame.palette.text),
            inspected(value));
  skip(11);
}

void Pen::prose(const std::string& words, Rgb color) {
  y = std::round(y);
  const ImVec2 size = draw_prose(frame.fonts.sans14, {left, y}, right - left, color, words);
  platform::move_to({left, y});
  ImGui::Dummy(size);
  y += size.y;
  skip(4);
}

}  // namespace app::widgets
