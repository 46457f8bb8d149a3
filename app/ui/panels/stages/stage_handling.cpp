#include "app/ui/panels/stages/stage_handling.hpp"

#include <cmath>

#include "app/ui/panels/menus/action_menu.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/glossed_text.hpp"
#include "app/ui/widgets/hit_area.hpp"

namespace app::panels {
namespace {

void switch_large(const Frame& frame, Stage stage) {
  frame.commands.look(
      [stage](View& v) { v.look.large = v.look.large == stage ? std::nullopt : std::optional(stage); });
}

void draw_menu(const Frame& frame, Stage stage) {
  const std::string name = std::string("stage menu/") + core::attention::info(stage).name;
  if (ImGui::IsItemHovered() && ImGui::IsMouseReleased(ImGuiMouseButton_Right))
    ImGui::OpenPopup(name.c_str());
  if (!ImGui::BeginPopup(name.c_str())) return;
  ImGui::PushFont(frame.fonts.sans15);
  const Situation situation = situation_of(frame);
  const std::vector<Action> all = actions(situation);
  const auto line = [&](const char* landmark, const char* words, const std::string& key,
                        bool enabled = true) {
    const bool chosen = ImGui::MenuItem(words, key.empty() ? nullptr : key.c_str(), false, enabled);
    frame.landmarks.mark_item(std::string("stage_menu/") + landmark);
    return chosen;
  };
  const auto action = [&](const char* id) {
    if (const Action* found = find_action(all, id)) draw_action_line(frame, situation, *found);
  };
  const bool is_large = frame.shown.look.large.has_value();
  const Action* alone = find_action(all, "stages/alone");
  if (line("large", is_large ? "Back to all stages" : "Show large",
           alone ? key_words(*alone, frame.newest) : ""))
    switch_large(frame, stage);
  if (line("fold", "Fold away", "", !is_large))
    frame.commands.look([stage](View& view) { view.look.folded.insert(stage); });
  action("zoom/fit");
  ImGui::Separator();
  for (const char* id : {"stages/gutters", "colours/logarithmic", "colours/lock"}) action(id);
  ImGui::PopFont();
  ImGui::EndPopup();
}

}  // namespace

void draw_stage_title(const Frame& frame, const std::string& name, Stage stage, ImFont* font, ImVec2 at) {
  const char* words = core::attention::info(stage).title;
  const ImVec2 size{widgets::text_width(font, words), font->FontSize + 2};
  ImGui::SetCursorScreenPos({std::round(at.x), std::round(at.y)});
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
  draw_menu(frame, stage);
}

void handle_stage(const Frame& frame, Stage stage) {
  if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left))
    switch_large(frame, stage);
  ImGui::PushID("map");  // the title has a menu of the same name
  draw_menu(frame, stage);
  ImGui::PopID();
}

}  // namespace app::panels
