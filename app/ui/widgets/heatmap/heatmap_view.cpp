#include "app/ui/widgets/heatmap/heatmap_view.hpp"

#include <algorithm>

#include "app/session/navigation.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/heatmap/color_bar.hpp"
#include "app/ui/widgets/heatmap/heatmap_drawn.hpp"

namespace app::widgets {
namespace {

using core::attention::Columns;
using core::attention::StageInfo;

/// The pinned cell as a cross on another stage: token rows and columns carry over, features do not.
void link_selection(const Frame& frame, const Heatmap& map, Drawn& d) {
  const std::optional<CellRef>& pinned = frame.shown.selection.pinned;
  if (!pinned || (!has_cells_of_stage(map) && !map.other->of_tokens)) return;
  const StageInfo& from = core::attention::info(pinned->stage);
  const bool here = pinned->stage == map.stage && shows_head(frame, map, pinned->head);
  const bool other_keys = !frame.shown.model.sequences[frame.shown.look.sequence].key_tokens.empty();
  if (!here && other_keys && d.stage.rows != from.rows && from.columns != Columns::tokens) return;
  const bool both_tokens = from.columns == Columns::tokens && d.stage.columns == Columns::tokens;
  if (here || both_tokens) {
    d.cross = render::Cross{pinned->row, pinned->column};
  } else {
    // No such column: the row alone stays bright, of keys and values that of the key.
    const bool of_key = from.columns == Columns::tokens && d.stage.rows == core::attention::Rows::keys;
    d.cross = render::Cross{of_key ? pinned->column : pinned->row, d.numbers.n_cols};
    d.row_only = true;
  }
}

/// Other numbers than a stage's are shown whole.
CellWindow part_of(const Frame& frame, const Heatmap& map, const Numbers& numbers) {
  const Shape shape{numbers.n_rows, numbers.n_cols};
  return has_cells_of_stage(map) && !map.whole ? shown_part(frame.shown.look, shape) : whole(shape);
}

Drawn drawn_at(const Frame& frame, const Heatmap& map, ImVec2 corner) {
  const Numbers numbers = shown_numbers(frame, map);
  const ImVec2 size(static_cast<float>(map.width), static_cast<float>(map.height));
  const CellWindow part = part_of(frame, map, numbers);
  Drawn d{core::attention::info(map.stage),
          numbers,
          corner,
          {corner.x + size.x, corner.y + size.y},
          part,
          size.x / static_cast<float>(part.right - part.left),
          size.y / static_cast<float>(part.bottom - part.top),
          {}};
  link_selection(frame, map, d);
  return d;
}

}  // namespace

bool shows_head(const Frame& frame, const Heatmap& map, std::size_t head) {
  const auto& model = frame.shown.model;
  return matrix_of_head(model, map.stage, head) == matrix_of_head(model, map.stage, map.head);
}

CellRange cells_on_screen(const Drawn& d) {
  const ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 low = list->GetClipRectMin(), high = list->GetClipRectMax();
  const auto index = [](double place, double most) {
    return static_cast<std::size_t>(std::clamp(place, 0.0, most));
  };
  const auto n_rows = static_cast<double>(d.numbers.n_rows),
             n_columns = static_cast<double>(d.numbers.n_cols);
  const auto row = [&](float y) {
    return d.part.top + static_cast<double>((y - d.corner.y) / d.cell_height);
  };
  const auto column = [&](float x) {
    return d.part.left + static_cast<double>((x - d.corner.x) / d.cell_width);
  };
  return {index(std::floor(std::max(row(low.y), d.part.top)), n_rows),
          index(std::ceil(std::min(row(high.y), d.part.bottom)), n_rows),
          index(std::floor(std::max(column(low.x), d.part.left)), n_columns),
          index(std::ceil(std::min(column(high.x), d.part.right)), n_columns)};
}

Numbers shown_numbers(const Frame& frame, const Heatmap& map) {
  if (map.other) return Numbers(*map.other->numbers);
  return Numbers(core::attention::info(map.stage).matrix(frame.shown.trace, map.head));
}

void draw_picture(const Frame& frame, const Heatmap& map, ImVec2 corner) {
  const Drawn d = drawn_at(frame, map, {std::round(corner.x), std::round(corner.y)});
  const ImTextureID pixels = frame.painter.paint(picture_of(frame, map, d, scale_of(frame, map)));
  ImGui::GetWindowDrawList()->AddImage(pixels, d.corner, d.far);
}

void draw_heatmap(const Frame& frame, const Heatmap& map, ImVec2 top_left) {
  const Drawn d = drawn_at(
      frame, map,
      {std::round(top_left.x + map.label_width), std::round(top_left.y + column_label_height(frame, map))});
  if (ImGui::IsRectVisible(top_left, {d.far.x, d.far.y + frame.metrics.px(30)})) {
    const ColorScale scale = scale_of(frame, map);
    ImDrawList* list = ImGui::GetWindowDrawList();
    list->AddImage(frame.painter.paint(picture_of(frame, map, d, scale)), d.corner, d.far);
    draw_row_labels(frame, map, d);
    draw_column_labels(frame, map, d);
    list->PushClipRect(d.corner, d.far, true);
    draw_numbers(frame, map, d, scale);
    list->PopClipRect();
    draw_marks(frame, map, d);
    if (map.gutter_width > 0) draw_gutters(frame, map, d);
    if (map.show_bar) draw_bar(frame, map, d, scale);
  }
  handle_mouse(frame, map, d);
}

}  // namespace app::widgets
