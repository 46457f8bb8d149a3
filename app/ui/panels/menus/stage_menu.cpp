#include "app/ui/panels/menus/stage_menu.hpp"

#include "app/theme/imgui_compat.hpp"
#include "app/ui/actions/action_rows.hpp"
#include "app/ui/panels/menus/action_menu.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/glossed_text.hpp"
#include "app/ui/widgets/hit_area.hpp"

namespace app::panels {

void draw_stage_menu(const Frame& frame, const char* place, Stage stage, std::size_t head) {
  const std::string name =
      std::string(place) + "/" + core::attention::info(stage).name + "/" + std::to_string(head);
  if (ImGui::IsItemHovered() && ImGui::IsMouseReleased(ImGuiMouseButton_Right))
    ImGui::OpenPopup(name.c_str());
  if (!ImGui::BeginPopup(name.c_str())) return;
  platform::push_font(frame.fonts.sans15);
  const Situation situation = situation_of(frame);
  rows::Rows all;
  rows::add_stage_menu(all, situation, stage, head);
  draw_action_lines(frame, situation, all, "Stage");
  ImGui::PopFont();
  ImGui::EndPopup();
}

void draw_title_area(const Frame& frame, const std::string& name, Stage stage, std::size_t head, ImVec2 min,
                     ImVec2 size) {
  platform::move_to(min);
  if (widgets::hit_area(name.c_str(), size))
    frame.commands.look([stage, head](View& v) {
      v.look.large = stage, v.look.tab = Tab::stages;
      if (core::attention::info(stage).per_head) v.look.head = head;
    });
  frame.landmarks.mark_item(name);
  const ImVec2 max = ImGui::GetItemRectMax();
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (ImGui::IsItemFocused() && ImGui::GetIO().NavVisible)
    widgets::outline(list, {min.x - 3, min.y - 1}, {max.x + 3, max.y + 1}, packed(frame.palette.accent), 2);
  if (ImGui::IsItemHovered()) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    list->AddRectFilled({min.x, max.y - 1}, {max.x, max.y}, packed(frame.palette.faint));
    if (const auto* term = widgets::term_of(stage))
      widgets::explain_term(frame, *term, "A click shows it large; a right click has more.");
  }
  draw_stage_menu(frame, name.c_str(), stage, head);
}

}  // namespace app::panels
