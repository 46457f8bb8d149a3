// What is outlined on a heatmap.
#include <algorithm>

#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/heatmap/heatmap_drawn.hpp"
#include "core/graph/explain.hpp"

namespace app::widgets {
namespace {

using core::attention::Columns;

/// What marks are thicker when they are to be seen from the last row.
float thicker(const Frame& frame) {
  return frame.shown.selection.presenting.on ? 2.0f : 1.0f;
}

/// A frame around a rectangle of cells, around at least a few pixels when cells are smaller.
void outline_cells(const Drawn& d, const core::explain::Cells& cells, ImU32 color, float thickness) {
  const ImVec2 a = d.cell_min(cells.row0, cells.column0), b = d.cell_max(cells.row1 - 1, cells.column1 - 1);
  const float least = 2 * thickness + 1;
  outline(ImGui::GetWindowDrawList(), {a.x - 1, a.y - 1},
          {std::max(b.x, a.x + least), std::max(b.y, a.y + least)}, color, thickness);
}

/// What the pinned cell was worked out from, and more quietly what it goes into.
void draw_links(const Frame& frame, const Heatmap& map, const Drawn& d) {
  if (!frame.shown.selection.pinned) return;
  const auto is_here = [&](const core::explain::Cells& cells) {
    return cells.source == core::explain::Source(map.stage) && shows_head(frame, map, cells.head);
  };
  const ImU32 quiet = packed(mix(frame.palette.operand, frame.palette.ground.back, 0.5f));
  for (const auto& cells :
       core::explain::results(frame.shown.model, frame.shown.trace, *frame.shown.selection.pinned))
    if (is_here(cells)) outline_cells(d, cells, quiet, 2 * thicker(frame));
  for (const CellRef& worked :
       core::explain::worked_out(frame.shown.model, frame.shown.trace, *frame.shown.selection.pinned))
    for (const auto& cells : core::explain::operands(frame.shown.model, frame.shown.trace, worked))
      if (is_here(cells)) outline_cells(d, cells, packed(frame.palette.operand), 2 * thicker(frame));
}

void draw_cross(const Frame& frame, const Drawn& d) {
  if (!d.cross) return;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImU32 line = packed(frame.palette.selection, 0.65f);
  const float thick = thicker(frame);
  outline(list, d.cell_min(d.cross->row, 0), d.cell_max(d.cross->row, d.numbers.n_cols - 1), line, thick);
  if (!d.row_only)
    outline(list, d.cell_min(0, d.cross->column), d.cell_max(d.numbers.n_rows - 1, d.cross->column), line,
            thick);
}

void draw_chosen(const Frame& frame, const Heatmap& map, const Drawn& d) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const auto& p = frame.palette;
  const auto is_here = [&](const std::optional<CellRef>& cell) {
    return cell && has_cells_of_stage(map) && cell->stage == map.stage && shows_head(frame, map, cell->head);
  };
  if (is_here(frame.shown.selection.pinned)) {
    const ImVec2 a = d.cell_min(frame.shown.selection.pinned->row, frame.shown.selection.pinned->column);
    const ImVec2 b = d.cell_max(frame.shown.selection.pinned->row, frame.shown.selection.pinned->column);
    const float out = 2 * thicker(frame);
    outline(list, {a.x - out, a.y - out},
            {std::max(b.x + out - 1, a.x + 4), std::max(b.y + out - 1, a.y + 4)}, packed(p.selection), out);
    if (b.x - a.x > 6 && b.y - a.y > 6)
      outline(list, a, {b.x - 1, b.y - 1}, packed(p.selection_inner), thicker(frame));
  }
  if (is_here(frame.shown.selection.hovered)) {
    const ImVec2 a = d.cell_min(frame.shown.selection.hovered->row, frame.shown.selection.hovered->column);
    const ImVec2 b = d.cell_max(frame.shown.selection.hovered->row, frame.shown.selection.hovered->column);
    outline(list, {a.x - 1, a.y - 1}, {std::max(b.x, a.x + 2), std::max(b.y, a.y + 2)}, packed(p.selection),
            1);
  }
}

/// Cells of the mask that were switched by hand.
void draw_switched(const Frame& frame, const Heatmap& map, const Drawn& d) {
  if (map.other || d.stage.columns != Columns::tokens || map.stage < Stage::mask ||
      !core::attention::info(Stage::mask).present(frame.shown.model))
    return;
  const float side = std::min(frame.metrics.px(6), d.cell_height / 3);
  for (const auto& cell : frame.shown.model.mask.cells) {
    const ImVec2 a = d.cell_min(cell.row, cell.column);
    ImGui::GetWindowDrawList()->AddRectFilled({a.x + 2, a.y + 2}, {a.x + 2 + side, a.y + 2 + side},
                                              packed(frame.palette.accent));
  }
}

/// A corner cut off every cell that was typed over.
void draw_typed_cells(const Frame& frame, const Heatmap& map, const Drawn& d) {
  if (map.other) return;
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (const auto& [place, value] : frame.shown.model.given.cells) {
    const bool here = place.stage == map.stage && place.sequence == frame.shown.look.sequence &&
                      place.head == matrix_of_head(frame.shown.model, map.stage, map.head);
    if (!here) continue;
    const ImVec2 a = d.cell_min(place.row, place.column), b = d.cell_max(place.row, place.column);
    const float side = std::max(3.0f, std::min(frame.metrics.px(8), (b.y - a.y) * 0.45f));
    list->AddTriangleFilled({b.x - side, a.y}, {b.x, a.y}, {b.x, a.y + side},
                            packed(frame.palette.selection));
    list->AddTriangle({b.x - side, a.y}, {b.x, a.y}, {b.x, a.y + side}, packed(frame.palette.ground.back), 1);
  }
}

}  // namespace

void draw_marks(const Frame& frame, const Heatmap& map, const Drawn& d) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->PushClipRect({d.corner.x - 5, d.corner.y - 5}, {d.far.x + 5, d.far.y + 5}, true);
  draw_changes(frame, map, d);
  draw_cross(frame, d);
  if (!map.other || !map.other->of_stage) draw_links(frame, map, d);
  draw_chosen(frame, map, d);
  draw_switched(frame, map, d);
  draw_typed_cells(frame, map, d);
  list->PopClipRect();
}

}  // namespace app::widgets
