#include "app/ui/panels/bars/menu_bar.hpp"

#include <cmath>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/menus/action_menu.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

constexpr float between_names = 24;  // at scale 1

/// What centres the names of the menus in their bar; lines of open menus are spaced as everywhere.
void push_bar_style(const Frame& frame) {
  const float above = std::round((frame.metrics.menu - platform::font_size(frame.fonts.sans16)) / 2);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {ImGui::GetStyle().FramePadding.x, above});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing,
                      {std::round(frame.metrics.px(between_names) / 2), ImGui::GetStyle().ItemSpacing.y});
}

/// Its actions are listed when it is open.
void draw_menu(const Frame& frame, const Subject& subject) {
  const std::string name = std::string("menu/") + subject.menu;
  push_bar_style(frame);
  const bool open = ImGui::BeginMenu(subject.menu);
  ImGui::PopStyleVar(2);
  if (!open) frame.landmarks.mark_item(name);
  if (!open) return;
  const Situation situation = situation_of(frame);
  draw_action_lines(frame, situation, subject.actions(situation), subject.menu);
  ImGui::EndMenu();
  frame.landmarks.mark_item(name);
}

void title(const Frame& frame) {
  ImFont* font = frame.fonts.sans14;
  const ImVec2 pos = ImGui::GetWindowPos();
  const std::string words = frame.document.title + (frame.document.modified ? " •" : "");
  const float right = pos.x + ImGui::GetWindowWidth() - frame.metrics.padding;
  const float room = right - ImGui::GetCursorScreenPos().x - frame.metrics.px(24);
  if (room <= 0) return;
  const std::string shown = widgets::shortened(font, words, room);
  const float y = widgets::centred_y(frame.fonts.sans16, pos.y, frame.metrics.menu) +
                  widgets::baseline_drop(frame.fonts.sans16, font),
              width = widgets::text_width(font, shown);
  widgets::draw_text(font, {right - width, y}, frame.palette.dim, shown);
  frame.landmarks.mark("menu/title", {right - width, pos.y}, {right, pos.y + frame.metrics.menu});
}

}  // namespace

void draw_menu_bar(const Frame& frame) {
  platform::push_font(frame.fonts.sans16);
  push_bar_style(frame);
  const bool visible = ImGui::BeginMenuBar();
  ImGui::PopStyleVar(2);
  if (visible) {
    ImGui::SetCursorPosX(frame.metrics.padding - std::round(frame.metrics.px(between_names) / 4));
    for (const Subject& subject : subjects()) draw_menu(frame, subject);
    title(frame);
    ImGui::EndMenuBar();
  }
  ImGui::PopFont();
}

}  // namespace app::panels
