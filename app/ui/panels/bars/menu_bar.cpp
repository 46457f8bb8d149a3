#include "app/ui/panels/bars/menu_bar.hpp"

#include "app/ui/panels/menus/action_menu.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

/// Its actions are listed when it is open.
void draw_menu(const Frame& frame, const Subject& subject) {
  const std::string name = std::string("menu/") + subject.menu;
  const bool open = ImGui::BeginMenu(subject.menu);
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
  const float y = widgets::centred_y(font, pos.y, frame.metrics.menu),
              width = widgets::text_width(font, shown);
  widgets::draw_text(font, {right - width, y}, frame.palette.dim, shown);
  frame.landmarks.mark("menu/title", {right - width, pos.y}, {right, pos.y + frame.metrics.menu});
}

}  // namespace

void draw_menu_bar(const Frame& frame) {
  ImGui::PushFont(frame.fonts.sans16);
  if (ImGui::BeginMenuBar()) {
    for (const Subject& subject : subjects()) draw_menu(frame, subject);
    title(frame);
    ImGui::EndMenuBar();
  }
  ImGui::PopFont();
}

}  // namespace app::panels
