#include "app/panels/heads_panel.hpp"

#include <algorithm>
#include <cmath>

#include "app/widgets/drawing.hpp"
#include "app/widgets/heatmap_view.hpp"

namespace app::panels {
namespace {

using core::attention::Columns;
using core::attention::StageInfo;

/// Where the small multiples stand: equal tiles in as many columns as make the pictures largest.
struct Tiling {
  std::size_t columns = 1;
  int width = 0, height = 0;       // of one picture
  float tile_width = 0, tile_height = 0;
  bool row_tokens = true, column_tokens = true;
};

int whole_cells(float room, std::size_t count, float largest_pitch) {
  const int n = static_cast<int>(count);
  if (room < static_cast<float>(n)) return std::max(1, static_cast<int>(room));
  return n * static_cast<int>(std::min(std::floor(room / static_cast<float>(n)), largest_pitch));
}

/// A token × token picture: the strip's wide cells when they can hold numbers, else squares.
void fit_square(const Metrics& m, float width, float height, std::size_t n, Tiling& t) {
  const float count = static_cast<float>(n), wide = std::min(width / count, height / count * 39 / 24);
  if (wide >= m.px(27)) {
    const float cell = std::floor(std::min(wide, m.px(64)));
    t.width = static_cast<int>(n) * static_cast<int>(cell);
    t.height = static_cast<int>(n) * static_cast<int>(std::round(cell * 24 / 39));
  } else {
    t.width = t.height = whole_cells(std::min(width, height), n, m.px(40));
  }
}

Tiling tile(const Frame& frame, const StageInfo& stage, ImVec2 room) {
  const auto& m = frame.metrics;
  const arma::mat& numbers = stage.matrix(frame.trace, 0);
  const std::size_t n = stage.per_head ? frame.trace.heads.size() : 1;
  const bool square = stage.columns == Columns::tokens;
  const float foot = m.px(26), gap = m.px(14);
  Tiling best;
  for (std::size_t columns = 1; columns <= n; ++columns) {
    Tiling t;
    t.columns = columns;
    const std::size_t rows = (n + columns - 1) / columns;
    t.row_tokens = t.column_tokens = numbers.n_rows <= 64 && n <= 12;
    const float labels = m.px(t.row_tokens ? 70 : 34), head = m.px(t.column_tokens && square ? 34 : 19);
    const float w = room.x / static_cast<float>(columns) - labels - gap, h = room.y / static_cast<float>(rows) - head - foot - gap;
    if (w < m.px(60)) break;
    const float usable_height = std::max(h, m.px(square ? 110 : 60));
    if (square) {
      fit_square(m, w, usable_height, numbers.n_cols, t);
    } else {
      t.width = whole_cells(w, numbers.n_cols, m.px(52));
      t.height = whole_cells(usable_height, numbers.n_rows, m.px(26));
    }
    t.tile_width = labels + static_cast<float>(t.width) + gap;
    t.tile_height = head + static_cast<float>(t.height) + foot + gap;
    const auto area = [](const Tiling& x) { return static_cast<double>(x.width) * x.height; };
    if (area(t) > area(best) * 1.001) best = t;
  }
  return best;
}

}  // namespace

void draw_heads(const Frame& frame) {
  const StageInfo& stage = core::attention::info(frame.view.heads_stage);
  const std::size_t n = stage.per_head ? frame.trace.heads.size() : 1;
  const ImVec2 room{ImGui::GetContentRegionAvail().x - ImGui::GetStyle().ScrollbarSize, ImGui::GetContentRegionAvail().y - frame.metrics.px(34)};
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const Tiling t = tile(frame, stage, room);
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (std::size_t h = 0; h < n; ++h) {
    widgets::Heatmap map;
    map.place = "heads/" + std::to_string(h);
    map.stage = stage.stage;
    map.head = h;
    map.width = t.width, map.height = t.height;
    map.row_tokens = t.row_tokens && h % t.columns == 0;
    map.column_tokens = t.column_tokens && h < t.columns;
    map.label_width = frame.metrics.px(t.row_tokens ? 70 : 34);
    map.show_bar = false;
    const ImVec2 corner{origin.x + static_cast<float>(h % t.columns) * t.tile_width, origin.y + static_cast<float>(h / t.columns) * t.tile_height};
    const float drop = t.column_tokens && stage.columns == Columns::tokens && !map.column_tokens ? frame.metrics.px(15) : 0;
    widgets::draw_heatmap(frame, map, {corner.x, corner.y + drop});
    const float left = std::round(corner.x + map.label_width);
    const float top = std::round(corner.y + drop + widgets::column_label_height(frame, map));
    const float bottom = top + static_cast<float>(t.height), right = left + static_cast<float>(t.width);
    if (stage.per_head && h == frame.view.head)
      widgets::outline(list, {left - 5, top - 5}, {right + 4, bottom + 4}, packed(frame.palette.selection), 2);
    const bool chosen = stage.per_head && h == frame.view.head;
    widgets::draw_text(frame.fonts.sans14, {left, bottom + frame.metrics.px(16)}, widgets::Align::left_middle,
                       packed(chosen ? frame.palette.text : frame.palette.dim),
                       stage.per_head ? "head " + std::to_string(h) : std::string("all heads"));
    ImGui::SetCursorScreenPos({left, bottom + frame.metrics.px(6)});
    ImGui::InvisibleButton(("choose head " + std::to_string(h)).c_str(), {std::max(1.0f, static_cast<float>(t.width)), frame.metrics.px(20)});
    frame.landmarks.mark_item("heads/name/" + std::to_string(h));
    if (stage.per_head && ImGui::IsItemClicked()) frame.commands.look([h](View& v) { v.head = h; });
    if (stage.per_head && ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(0))
      frame.commands.look([h](View& v) { v.head = h, v.tab = Tab::stages; });
  }
  ImGui::SetCursorScreenPos(origin);
  ImGui::Dummy({room.x, std::max(1.0f, static_cast<float>((n + t.columns - 1) / t.columns) * t.tile_height)});
}

}  // namespace app::panels
