#include "app/ui/panels/dialogs/palette_line.hpp"

#include <algorithm>

#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/utf8.hpp"

namespace app::panels {
namespace {

/// A letter with all of its bytes.
std::size_t letter_end(std::string_view text, std::size_t at) {
  do ++at;
  while (at < text.size() && !core::text::starts_character(text[at]));
  return at;
}

/// The name; what was matched stands out.
void draw_name(const Frame& frame, const FoundAction& found, ImVec2 at, float room, bool possible) {
  ImFont* font = frame.fonts.sans15;
  const std::string shown = widgets::shortened(font, found.name, room);
  const Rgb plain = possible ? frame.palette.text : frame.palette.faint;
  const Rgb lit = possible ? frame.palette.accent : frame.palette.dim;
  const auto is_lit = [&](std::size_t from, std::size_t to) {
    const auto first = std::lower_bound(found.lit.begin(), found.lit.end(), from);
    return first != found.lit.end() && *first < to;
  };
  for (std::size_t begin = 0; begin < shown.size();) {
    std::size_t end = letter_end(shown, begin);
    const bool now = is_lit(begin, end);
    while (end < shown.size() && is_lit(end, letter_end(shown, end)) == now) end = letter_end(shown, end);
    const std::string_view run = std::string_view(shown).substr(begin, end - begin);
    widgets::draw_text(font, at, now ? lit : plain, run);
    at.x += widgets::text_width(font, run);
    begin = end;
  }
}

void draw_check(const Frame& frame, ImVec2 middle) {
  const float u = frame.metrics.px(4);
  const ImVec2 points[]{
      {middle.x - u, middle.y}, {middle.x - u / 4, middle.y + u * 3 / 4}, {middle.x + u, middle.y - u}};
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (std::size_t k = 0; k < 2; ++k)
    list->AddLine(points[k], points[k + 1], packed(frame.palette.accent), 1.5f * frame.metrics.scale);
}

}  // namespace

void draw_palette_line(const Frame& frame, const Situation& situation, const FoundAction& found, ImVec2 min,
                       ImVec2 max, bool chosen) {
  const Action& action = *found.action;
  const std::string why = why_not(action, situation), key = key_words(action, situation.newest);
  const auto px = [&](float length) { return frame.metrics.px(length); };
  if (chosen)
    ImGui::GetWindowDrawList()->AddRectFilled(min, max, packed(frame.palette.control.hovered), px(3));
  const float gutter = px(28), keys = px(120), height = max.y - min.y;
  if (action.checked && action.checked(situation))
    draw_check(frame, {min.x + gutter / 2, min.y + height / 2});
  const std::string& remark = why.empty() ? found.place : why;
  ImFont *small = frame.fonts.sans13, *font = frame.fonts.sans15, *mono = frame.fonts.mono13;
  const float right = max.x - keys;
  const float remark_width = std::min(widgets::text_width(small, remark), (right - min.x) / 2);
  draw_name(frame, found, {min.x + gutter, widgets::centred_y(font, min.y, height)},
            right - remark_width - px(16) - min.x - gutter, why.empty());
  widgets::draw_text_within(small, {right - remark_width, widgets::centred_y(small, min.y, height)},
                            remark_width + 1, why.empty() ? frame.palette.dim : frame.palette.faint, remark);
  if (!key.empty())
    widgets::draw_text_right(mono, max.x - px(10), widgets::centred_y(mono, min.y, height),
                             why.empty() ? frame.palette.dim : frame.palette.faint, key);
}

}  // namespace app::panels
