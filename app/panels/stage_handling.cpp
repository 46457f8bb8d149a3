#include "app/panels/stage_handling.hpp"

#include <cmath>

#include "app/panels/colours_popup.hpp"
#include "app/widgets/drawing.hpp"
#include "app/widgets/glossed_text.hpp"
#include "app/widgets/hit_area.hpp"

namespace app::panels {
namespace {

void switch_large(const Frame& frame, Stage stage) {
  frame.commands.look([stage](View& v) { v.large = v.large == stage ? std::nullopt : std::optional(stage); });
}

void draw_menu(const Frame& frame, Stage stage) {
  const std::string name = std::string("stage menu/") + core::attention::info(stage).name;
  if (ImGui::IsItemHovered() && ImGui::IsMouseReleased(ImGuiMouseButton_Right)) ImGui::OpenPopup(name.c_str());
  if (!ImGui::BeginPopup(name.c_str())) return;
  ImGui::PushFont(frame.fonts.sans15);
  const View& v = frame.view;
  const auto line = [&](const char* landmark, const char* words, const char* key, bool on = false, bool enabled = true) {
    const bool chosen = ImGui::MenuItem(words, key, on, enabled);
    frame.landmarks.mark_item(std::string("stage_menu/") + landmark);
    return chosen;
  };
  if (line("large", v.large ? "Back to all stages" : "Show large", "L")) switch_large(frame, stage);
  if (line("fold", "Fold away", nullptr, false, !v.large))
    frame.commands.look([stage](View& view) { view.folded.insert(stage); });
  if (line("fit", "Fit: show all cells", "F", false, !v.zoomed.empty()))
    frame.commands.look([](View& view) { view.zoomed.clear(); });
  ImGui::Separator();
  if (line("gutters", "Row sums and entropy", "G", v.gutters))
    frame.commands.look([](View& view) { view.gutters = !view.gutters; });
  if (line("logarithmic", "Logarithmic colours", nullptr, v.colours.logarithmic))
    frame.commands.look([](View& view) { view.colours.logarithmic = !view.colours.logarithmic; });
  if (line("lock", "Lock the colours' ends", nullptr, v.colours.locked.has_value())) switch_lock(frame);
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
    const char* remark = frame.view.large ? "A click goes back to all stages." : "A click shows it large; a right click has more.";
    if (const auto* term = widgets::term_of(stage)) widgets::explain_term(frame, *term, remark);
  }
  draw_menu(frame, stage);
}

void handle_stage(const Frame& frame, Stage stage) {
  if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) switch_large(frame, stage);
  ImGui::PushID("map");  // the title has a menu of the same name
  draw_menu(frame, stage);
  ImGui::PopID();
}

}  // namespace app::panels
