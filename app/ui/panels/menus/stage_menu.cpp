#include "app/ui/panels/menus/stage_menu.hpp"

#include "app/ui/actions/action_rows.hpp"
#include "app/ui/panels/menus/action_menu.hpp"

namespace app::panels {

void draw_stage_menu(const Frame& frame, const char* place, Stage stage, std::size_t head) {
  const std::string name =
      std::string(place) + "/" + core::attention::info(stage).name + "/" + std::to_string(head);
  if (ImGui::IsItemHovered() && ImGui::IsMouseReleased(ImGuiMouseButton_Right))
    ImGui::OpenPopup(name.c_str());
  if (!ImGui::BeginPopup(name.c_str())) return;
  ImGui::PushFont(frame.fonts.sans15);
  const Situation situation = situation_of(frame);
  rows::Rows all;
  rows::add_stage_menu(all, situation, stage, head);
  draw_action_lines(frame, situation, all, "Stage");
  ImGui::PopFont();
  ImGui::EndPopup();
}

}  // namespace app::panels
