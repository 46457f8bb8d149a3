#include <algorithm>
#include <cmath>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/editor/matrix_editor_parts.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::widgets {
namespace {

using namespace core::editing;

std::string landmark(std::size_t row) {
  return "edit/token/" + std::to_string(row);
}

struct Box {
  ImVec2 min, max;
};
Box label_box(const EditorFrame& e, std::size_t row) {
  const ImVec2 min(e.grid.label_left(), e.grid.cell_min(row, 0).y);
  return {min, {min.x + e.grid.label_width - e.grid.gap, min.y + e.grid.cell_size().y}};
}

void draw_label(const EditorFrame& e, std::size_t row) {
  const Palette& p = e.frame.palette;
  const Metrics& m = e.frame.metrics;
  const auto [min, max] = label_box(e, row);
  const float height = max.y - min.y;
  const std::string index = std::to_string(row);
  ImFont* mono = e.frame.fonts.mono12;
  const std::vector<std::string>* names = e.matrix.tokens ? e.matrix.tokens : e.matrix.names;
  if (!names) {
    draw_text_right(mono, max.x - m.px(8), centred_y(mono, min.y, height), p.faint, index);
  } else {
    ImFont* sans = e.frame.fonts.sans15;
    if (e.matrix.tokens) ImGui::GetWindowDrawList()->AddRectFilled(min, max, packed(p.control.rest), m.px(3));
    draw_text(mono, {min.x + m.px(7), centred_y(mono, min.y, height)}, p.faint, index);
    const float x = min.x + m.px(7) + text_width(mono, index) + m.px(7);
    draw_text_within(sans, {x, centred_y(sans, min.y, height)}, max.x - x - m.px(3),
                     e.matrix.tokens ? p.text : p.dim, (*names)[row]);
  }
  const auto& marked = e.matrix.marked_rows;
  if (std::find(marked.begin(), marked.end(), row) != marked.end()) {
    ImDrawList* list = ImGui::GetWindowDrawList();
    const float left = min.x - m.px(6);  // outside of the grid, like a marker beside a line
    list->PushClipRect({left, e.grid.view_min.y + e.grid.header_height}, {min.x, e.grid.view_max.y});
    list->AddRectFilled({left, min.y}, {left + m.px(2), max.y}, packed(p.operand));
    list->PopClipRect();
  }
  e.frame.landmarks.mark(landmark(row), {min.x, std::max(min.y, e.grid.view_min.y + e.grid.header_height)},
                         {max.x, std::min(max.y, e.grid.view_max.y)});
}

void rename_field(const EditorFrame& e, std::size_t row) {
  const auto [min, max] = label_box(e, row);
  FieldStyle style;
  style.width = max.x - min.x, style.font = e.frame.fonts.sans15, style.alignment = Alignment::left;
  platform::move_to(min);
  const FieldAnswer answer = text_field(e.frame, landmark(row), (*e.matrix.tokens)[row], style);
  if (answer.left && answer.text) e.frame.commands.edit(RenameToken{e.matrix.place.nth, row, *answer.text});
}

void start_renaming(const EditorFrame& e, std::size_t row) {
  e.frame.commands.look([name = landmark(row), text = (*e.matrix.tokens)[row]](View& view) {
    view.forms.typed = Typed{name, text, true, true};
  });
}

void menu(const EditorFrame& e, std::size_t row) {
  const std::size_t n_tokens = e.matrix.numbers.n_rows();
  const auto line = [&](const char* words, const char* key, bool enabled = true) {
    const bool chosen = ImGui::MenuItem(words, nullptr, false, enabled);
    e.frame.landmarks.mark_item("edit/token_menu/" + std::string(key));
    return chosen;
  };
  const auto name = [](std::size_t at) { return std::to_string(at); };
  if (line("Rename", "rename")) start_renaming(e, row);
  if (line("Insert before", "insert_before")) e.frame.commands.edit(InsertToken{row, name(row)});
  if (line("Insert after", "insert_after")) e.frame.commands.edit(InsertToken{row + 1, name(row + 1)});
  if (line("Move up", "up", row > 0)) e.frame.commands.edit(MoveToken{e.matrix.place.nth, row, row - 1});
  if (line("Move down", "down", row + 1 < n_tokens))
    e.frame.commands.edit(MoveToken{e.matrix.place.nth, row, row + 1});
  if (line("Remove", "remove", n_tokens > 1)) e.frame.commands.edit(RemoveToken{row});
}

/// Dragged up or down, a token goes where the accent line shows.
void drag_token(const EditorFrame& e) {
  const auto from = e.grid.label_at(ImGui::GetIO().MouseClickedPos[ImGuiMouseButton_Left]);
  if (!from) return;
  const float y = ImGui::GetMousePos().y - e.grid.origin.y - e.grid.header_height;
  const float last = static_cast<float>(e.grid.n_rows - 1);
  const auto to = static_cast<std::size_t>(std::clamp(std::floor(y / e.grid.pitch.y), 0.0f, last));
  if (to == *from) return;
  if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Left)) {
    const auto [min, max] = label_box(e, to);
    const float line = to > *from ? max.y : min.y - e.grid.gap;
    ImGui::GetWindowDrawList()->AddRectFilled({min.x, line}, {max.x, line + e.grid.gap},
                                              packed(e.frame.palette.accent));
  } else if (ImGui::IsItemDeactivated()) {
    e.frame.commands.edit(MoveToken{e.matrix.place.nth, *from, to});
  }
}

void token_mouse(const EditorFrame& e) {
  const MatrixGrid& g = e.grid;
  platform::move_to({g.view_min.x, g.view_min.y + g.header_height});
  hit_area("tokens", {g.label_width, g.view_max.y - g.view_min.y - g.header_height});
  const auto row = g.label_at(ImGui::GetMousePos());
  const bool over = ImGui::IsItemHovered() && row;
  drag_token(e);
  if (over && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) start_renaming(e, *row);
  if (over && ImGui::IsMouseReleased(ImGuiMouseButton_Right)) ImGui::OpenPopup(landmark(*row).c_str());
}

}  // namespace

void row_labels(const EditorFrame& e) {
  const MatrixGrid& g = e.grid;
  const auto rows = g.visible_rows();
  ImGui::PushClipRect({g.view_min.x, g.view_min.y + g.header_height}, g.view_max, true);
  for (std::size_t row = rows.first; row < rows.end; ++row) {
    const auto& typed = e.frame.forms.typed;
    if (e.matrix.tokens && typed && typed->field == landmark(row))
      rename_field(e, row);
    else
      draw_label(e, row);
    if (e.matrix.tokens && ImGui::BeginPopup(landmark(row).c_str())) {
      menu(e, row);
      ImGui::EndPopup();
    }
  }
  ImGui::PopClipRect();
  if (e.matrix.tokens) token_mouse(e);
}

}  // namespace app::widgets
