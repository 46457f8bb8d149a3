#include "app/ui/panels/tokens/token_chips.hpp"

#include <algorithm>
#include <cmath>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

constexpr std::size_t most_chip_lines = 3;

bool has_lines(const Frame& frame, std::size_t head) {
  return frame.shown.look.tokens.silent_heads.count(head) == 0;
}

void draw_chip(const Frame& frame, std::size_t h, ImVec2 at, float width) {
  const Palette& p = frame.palette;
  const bool on = has_lines(frame, h);
  const std::string name = "tokens/head/" + std::to_string(h);
  platform::move_to(at);
  ImGui::PushStyleColor(ImGuiCol_Button, vec(on ? p.control.active : p.control.rest));
  const bool pressed = ImGui::Button(("##" + name).c_str(), {width, frame.metrics.frame});
  ImGui::PopStyleColor();
  frame.landmarks.mark_item(name);
  widgets::tooltip((on ? "Hides the lines of head " : "Shows the lines of head ") + std::to_string(h));
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float middle = at.y + frame.metrics.frame / 2, half = frame.metrics.px(5);
  const ImVec2 min{at.x + frame.metrics.px(8), std::round(middle - half)},
      max{min.x + 2 * half, min.y + 2 * half};
  if (on)
    list->AddRectFilled(min, max, packed(p.head(h)), frame.metrics.px(2));
  else
    widgets::outline(list, min, max, packed(p.faint), 1);
  widgets::draw_text(frame.fonts.mono13, {at.x + width - frame.metrics.px(7), middle},
                     widgets::Align::right_middle, packed(on ? p.text : p.faint), std::to_string(h));
  if (!pressed) return;
  frame.commands.look([h, on](View& v) {
    if (on)
      v.look.tokens.silent_heads.insert(h);
    else
      v.look.tokens.silent_heads.erase(h);
  });
}

}  // namespace

std::vector<std::size_t> heads_with_lines(const Frame& frame) {
  std::vector<std::size_t> heads;
  for (std::size_t h = 0; h < frame.shown.trace.heads.size(); ++h)
    if (has_lines(frame, h)) heads.push_back(h);
  return heads;
}

void draw_token_chips(const Frame& frame, float width) {
  const auto& m = frame.metrics;
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const std::size_t n = frame.shown.trace.heads.size();
  const float label = m.px(52), buttons = m.px(110), gap = m.px(4), pitch = m.frame + gap;
  const float chip = m.px(24) + widgets::text_width(frame.fonts.mono13, std::to_string(n - 1)) + m.px(8);
  const float room = std::max(chip, width - label - buttons);
  const auto per_line = std::max<std::size_t>(1, static_cast<std::size_t>((room + gap) / (chip + gap)));
  const std::size_t lines = (n + per_line - 1) / per_line;
  const float height = static_cast<float>(std::min(lines, most_chip_lines)) * pitch;
  widgets::draw_text(frame.fonts.sans15, {origin.x, origin.y + m.frame / 2}, widgets::Align::left_middle,
                     packed(frame.palette.dim), "heads");

  const float chips_width = static_cast<float>(std::min(n, per_line)) * (chip + gap);
  platform::move_to({origin.x + label, origin.y});
  platform::begin_child(
      "chips", {chips_width + ImGui::GetStyle().ScrollbarSize, height}, false,
      lines > most_chip_lines ? 0 : ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  const ImVec2 first = ImGui::GetCursorScreenPos();
  for (std::size_t h = 0; h < n; ++h)
    draw_chip(frame, h,
              {first.x + static_cast<float>(h % per_line) * (chip + gap),
               first.y + static_cast<float>(h / per_line) * pitch},
              chip);
  ImGui::EndChild();

  platform::move_to({origin.x + label + chips_width + m.px(10), origin.y});
  if (n > 1) {
    if (widgets::button(frame, "tokens/all", "all", "Shows the lines of every head"))
      frame.commands.look([](View& v) { v.look.tokens.silent_heads.clear(); });
    ImGui::SameLine();
    if (widgets::button(frame, "tokens/none", "none", "Hides all lines"))
      frame.commands.look([n](View& v) {
        for (std::size_t h = 0; h < n; ++h) v.look.tokens.silent_heads.insert(h);
      });
  }
  platform::move_to(origin);
  ImGui::Dummy({width, height});
}

}  // namespace app::panels
