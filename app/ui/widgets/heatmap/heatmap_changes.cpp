// What the last edit changed, marked on the cells.
#include <algorithm>

#include "app/ui/widgets/heatmap/heatmap_drawn.hpp"

namespace app::widgets {
namespace {

constexpr float flash_strength = 0.35f;

/// How bright the flash still is, 0 … 1; what is being dragged can be read.
float flash(const Frame& frame) {
  if (frame.settings.reduce_motion || frame.work.changes->is_under_way()) return 0;
  return static_cast<float>(std::clamp(1 - frame.work.changes->seconds() / flash_seconds, 0.0, 1.0));
}

}  // namespace

const core::attention::StageMatrix* numbers_before(const Frame& frame, Stage stage, std::size_t head) {
  if (!frame.work.changes || !frame.work.changes->trace()) return nullptr;
  return frame.work.changes->before(stage, head,
                                    core::attention::info(stage).matrix(frame.shown.trace, head));
}

void draw_changes(const Frame& frame, const Heatmap& map, const Drawn& d) {
  const auto* before = map.other ? nullptr : numbers_before(frame, map.stage, map.head);
  const float least = frame.metrics.px(8);
  if (!before || d.cell_width < least || d.cell_height < least) return;
  const float strength = flash(frame) * flash_strength, thick = std::max(1.0f, frame.metrics.px(1));
  const ColorScale scale = scale_of(frame, map);
  const CellRange shown = cells_on_screen(d);
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (std::size_t i = shown.row0; i < shown.row1; ++i)
    for (std::size_t j = shown.column0; j < shown.column1; ++j) {
      if (!differs((*before)(i, j), d.numbers(i, j))) continue;
      const ImVec2 a = d.cell_min(i, j), b = d.cell_max(i, j);
      if (strength > 0) list->AddRectFilled(a, {b.x - 1, b.y - 1}, packed(frame.palette.selection, strength));
      const double v = d.numbers(i, j);
      const Rgb ground = std::isfinite(v) ? scale.color(v) : frame.palette.hatch.ground;
      const float inset = std::round((b.x - a.x) * 0.15f);
      list->AddRectFilled({a.x + inset, b.y - 1 - thick}, {b.x - inset - 1, b.y - 1},
                          packed(readable_on(ground), 0.9f));
    }
}

}  // namespace app::widgets
