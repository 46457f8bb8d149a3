#include "app/ui/panels/stages/stage_handling.hpp"

#include <cmath>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/menus/stage_menu.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/glossed_text.hpp"
#include "app/ui/widgets/hit_area.hpp"

namespace app::panels {
namespace {

void switch_large(const Frame& frame, Stage stage) {
  frame.commands.look(
      [stage](View& v) { v.look.large = v.look.large == stage ? std::nullopt : std::optional(stage); });
}

}  // namespace

void draw_stage_title(const Frame& frame, const std::string& name, Stage stage, ImFont* font, ImVec2 at) {
  const char* words = core::attention::info(stage).title;
  const ImVec2 size{widgets::text_width(font, words), platform::font_size(font) + 2};
  platform::move_to({std::round(at.x), std::round(at.y)});
  const bool pressed = widgets::hit_area(name.c_str(), size);
  frame.landmarks.mark_item(name);
  const ImVec2 min = ImGui::GetItemRectMin(), max = ImGui::GetItemRectMax();
  ImDrawList* list = ImGui::GetWindowDrawList();
  widgets::draw_text(font, at, widgets::Align::left_top, packed(frame.palette.text), words);
  if (ImGui::IsItemFocused() && ImGui::GetIO().NavVisible)
    widgets::outline(list, {min.x - 3, min.y - 1}, {max.x + 3, max.y + 1}, packed(frame.palette.accent), 2);
  if (pressed) switch_large(frame, stage);
  if (ImGui::IsItemHovered()) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    list->AddRectFilled({min.x, max.y - 1}, {max.x, max.y}, packed(frame.palette.faint));
    const char* remark = frame.shown.look.large ? "A click goes back to all stages."
                                                : "A click shows it large; a right click has more.";
    if (const auto* term = widgets::term_of(stage)) widgets::explain_term(frame, *term, remark);
  }
  draw_stage_menu(frame, "title", stage, frame.shown.look.head);
}

void handle_stage(const Frame& frame, Stage stage) {
  if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left))
    switch_large(frame, stage);
}

}  // namespace app::panels
