#include "app/ui/panels/bars/copy_menu.hpp"

#include "app/theme/imgui_compat.hpp"
#include "app/ui/actions/action_rows.hpp"
#include "app/ui/panels/menus/action_menu.hpp"

namespace app::panels {

void draw_copy_popup(const Frame& frame) {
  constexpr const char* name = "copy";
  if (frame.forms.dialog == Dialog::none && frame.shown.selection.hovered &&
      ImGui::IsMouseClicked(ImGuiMouseButton_Right)) {
    frame.commands.look(
        [cell = frame.shown.selection.hovered](View& view) { view.selection.copied_cell = cell; });
    ImGui::OpenPopup(name);
  }
  platform::push_font(frame.fonts.sans16);
  if (ImGui::BeginPopup(name)) {
    const Situation situation = situation_of(frame);
    rows::Rows all;
    rows::add_copying(all, situation, "Copy/as", frame.shown.selection.copied_cell);
    draw_action_lines(frame, situation, all, "Copy/as");
    ImGui::EndPopup();
  }
  ImGui::PopFont();
}

}  // namespace app::panels
