// What the mouse does on a heatmap.
#include <algorithm>
#include <cmath>

#include "app/pinning.hpp"
#include "app/widgets/cell_words.hpp"
#include "app/widgets/heatmap_drawn.hpp"
#include "app/zoom.hpp"

namespace app::widgets {
namespace {

constexpr double wheel_step = 1.25;

/// The place under the mouse, in cells.
ImVec2 place_under(const Drawn& d, ImVec2 mouse) {
  return {static_cast<float>(d.part.left) + (mouse.x - d.corner.x) / d.cell_width,
          static_cast<float>(d.part.top) + (mouse.y - d.corner.y) / d.cell_height};
}

std::size_t cell_at(float place, std::size_t count) {
  return static_cast<std::size_t>(std::clamp(std::floor(place), 0.0f, static_cast<float>(count - 1)));
}

/// The wheel shows more or fewer cells around the mouse; Shift leaves it to what scrolls.
void turn_wheel(const Frame& frame, const Drawn& d, ImVec2 place) {
  const ImGuiIO& io = ImGui::GetIO();
  if (io.MouseWheel == 0 || io.KeyShift || wheel_scrolls(frame.view, io.MousePos.x, io.MousePos.y)) return;
  const Shape shape{d.numbers.n_rows, d.numbers.n_cols};
  const double factor = std::pow(wheel_step, -static_cast<double>(io.MouseWheel));
  frame.commands.look([=](View& v) { zoom(v, shape, place.y, place.x, factor); });
}

/// Whether the button is held and has moved farther than a click may.
bool drags(const Frame& frame, const Drawn& d) {
  if (!ImGui::IsItemActive() || !ImGui::IsMouseDragging(ImGuiMouseButton_Left)) return false;
  const ImVec2 by = ImGui::GetIO().MouseDelta;
  const Shape shape{d.numbers.n_rows, d.numbers.n_cols};
  if (by.x != 0 || by.y != 0)
    frame.commands.look([shape, rows = -by.y / d.cell_height, columns = -by.x / d.cell_width](View& v) {
      move_part(v, shape, rows, columns);
    });
  return true;
}

/// A press and a release on the same map, without a drag between them.
bool clicked() {
  const ImGuiIO& io = ImGui::GetIO();
  const float most = io.MouseDragThreshold;
  return ImGui::IsItemDeactivated() && ImGui::IsItemHovered() && ImGui::IsMouseReleased(ImGuiMouseButton_Left) &&
         io.MouseDragMaxDistanceSqr[ImGuiMouseButton_Left] < most * most;
}

}  // namespace

void handle_mouse(const Frame& frame, const Heatmap& map, const Drawn& d) {
  ImGui::SetCursorScreenPos(d.corner);
  ImGui::InvisibleButton(map.place.c_str(), {std::max(1.0f, d.far.x - d.corner.x), std::max(1.0f, d.far.y - d.corner.y)});
  frame.landmarks.mark_item(map.place);
  if (drags(frame, d)) return ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  if (!ImGui::IsItemHovered()) return;
  const ImVec2 place = place_under(d, ImGui::GetIO().MousePos);
  const CellRef cell{map.stage, d.stage.per_head ? map.head : 0, cell_at(place.y, d.numbers.n_rows),
                     cell_at(place.x, d.numbers.n_cols)};
  if (!has_cells_of_stage(map)) {
    const std::string where = std::to_string(cell.row) + ", " + std::to_string(cell.column);
    ImGui::SetTooltip("%s: %s", where.c_str(), in_full(d.numbers(cell.row, cell.column)).c_str());
    return;
  }
  turn_wheel(frame, d, place);
  frame.commands.look([cell](View& v) { v.hovered = cell; });
  if (!map.other) draw_cell_tooltip(frame, cell);
  if (clicked()) frame.commands.look([cell](View& v) { pin(v, cell); });
}

}  // namespace app::widgets
