// What the mouse does on a heatmap.
#include <algorithm>
#include <cmath>
#include <limits>

#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/heatmap/heatmap_drawn.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "core/base/color.hpp"

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

/// The cells that one pixel stands for, and the one of them that is spoken of: that it shows, or under the
/// mouse.
struct Block {
  std::size_t row0 = 0, row1 = 1, column0 = 0, column1 = 1;
  std::size_t row = 0, column = 0;
  std::size_t count() const { return (row1 - row0) * (column1 - column0); }
};

Block block_at(const Drawn& d, render::ColorMap map, const render::Pooling& pooled, std::size_t row,
               std::size_t column) {
  Block b;
  b.row0 = row / pooled.rows * pooled.rows, b.column0 = column / pooled.columns * pooled.columns;
  b.row1 = std::min<std::size_t>(b.row0 + pooled.rows, d.numbers.n_rows);
  b.column1 = std::min<std::size_t>(b.column0 + pooled.columns, d.numbers.n_cols);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  b.row = row, b.column = column;
  if (map == render::ColorMap::mask) return b;  // of which the picture shows the mean
  // As the picture chooses: NaN wins, −∞ loses, else the largest, of signed numbers the one farthest from 0.
  const auto rank = [&](double v) {
    return std::isnan(v)               ? infinity
           : v == -infinity            ? -infinity
           : render::is_diverging(map) ? std::abs(v)
                                       : v;
  };
  b.row = b.row0, b.column = b.column0;
  for (std::size_t j = b.column0; j < b.column1; ++j)
    for (std::size_t i = b.row0; i < b.row1; ++i)
      if (rank(d.numbers(i, j)) > rank(d.numbers(b.row, b.column))) b.row = i, b.column = j;
  return b;
}

/// "the largest of 4 × 4 cells, rows 8 … 11, columns 0 … 3", or "" when a pixel shows one cell.
std::string pooled_words(const Block& b, render::ColorMap map) {
  if (b.count() < 2) return "";
  const auto span = [](std::size_t from, std::size_t to) {
    return from + 1 == to ? " " + std::to_string(from)
                          : "s " + std::to_string(from) + " … " + std::to_string(to - 1);
  };
  return std::string("this pixel shows the ") + core::color::pooled_as(map) + " of " +
         std::to_string(b.count()) + " cells: row" + span(b.row0, b.row1) + ", column" +
         span(b.column0, b.column1);
}

/// The wheel shows more or fewer cells around the mouse where it does not scroll; Shift leaves it to what
/// scrolls.
void turn_wheel(const Frame& frame, const Drawn& d, const CellRef& cell, ImVec2 place) {
  const ImGuiIO& io = ImGui::GetIO();
  if (io.MouseWheel == 0 || io.KeyShift || wheel_scrolls(frame.shown.selection, io.MousePos.x, io.MousePos.y))
    return;
  const Shape shape{d.numbers.n_rows, d.numbers.n_cols};
  if (!wheel_zooms(frame.shown.look, frame.shown.selection, cell, shape, io.KeyCtrl)) return;
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
  return ImGui::IsItemDeactivated() && ImGui::IsItemHovered() &&
         ImGui::IsMouseReleased(ImGuiMouseButton_Left) &&
         io.MouseDragMaxDistanceSqr[ImGuiMouseButton_Left] < most * most;
}

/// In the corner of a map that shows a part of its cells, how to come back.
void draw_way_back(const Frame& frame, const Heatmap& map, const Drawn& d) {
  const Shape shape{d.numbers.n_rows, d.numbers.n_cols};
  if (map.whole || !has_cells_of_stage(map) || !frame.shown.look.zoomed.contains(shape)) return;
  const char* words = "zoomed · fit (F)";
  ImFont* font = frame.fonts.sans12;
  const float pad = frame.metrics.px(4), width = text_width(font, words) + 2 * pad,
              height = platform::font_size(font) + frame.metrics.px(4);
  if (width > d.far.x - d.corner.x || height > d.far.y - d.corner.y) return;
  const ImVec2 min{d.far.x - width, d.corner.y}, max{d.far.x, d.corner.y + height};
  platform::move_to(min);
  const bool pressed = hit_area((map.place + "/fit").c_str(), {width, height});
  frame.landmarks.mark_item(map.place + "/fit");
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(min, max, packed(frame.palette.ground.raised));
  draw_text(font, {min.x + pad, (min.y + max.y) / 2}, Align::left_middle,
            packed(ImGui::IsItemHovered() ? frame.palette.text : frame.palette.dim), words);
  if (ImGui::IsItemFocused() && ImGui::GetIO().NavVisible)
    outline(list, min, max, packed(frame.palette.accent), 2);
  if (pressed) frame.commands.look([shape](View& v) { v.look.zoomed.erase(shape); });
}

}  // namespace

void handle_mouse(const Frame& frame, const Heatmap& map, const Drawn& d) {
  draw_way_back(frame, map, d);  // before the map, which would take the mouse from it
  platform::move_to(d.corner);
  hit_area(map.place.c_str(), {d.far.x - d.corner.x, d.far.y - d.corner.y});
  frame.landmarks.mark_item(map.place);
  if (drags(frame, d)) return ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  if (!ImGui::IsItemHovered()) return;
  const ImVec2 place = place_under(d, ImGui::GetIO().MousePos);
  const ColorScale scale = scale_of(frame, map);
  const Block block = block_at(d, scale.map, render::pooling(picture_of(frame, map, d, scale)),
                               cell_at(place.y, d.numbers.n_rows), cell_at(place.x, d.numbers.n_cols));
  const CellRef cell{map.stage, d.stage.per_head ? map.head : 0, block.row, block.column};
  if (!has_cells_of_stage(map)) {
    const std::string where = std::to_string(cell.row) + ", " + std::to_string(cell.column);
    ImGui::SetTooltip("%s: %s", where.c_str(), told_number(d.numbers(cell.row, cell.column)).c_str());
    return;
  }
  turn_wheel(frame, d, cell, place);
  frame.commands.look([cell](View& v) { v.selection.hovered = cell; });
  if (!map.other) draw_cell_tooltip(frame, cell, pooled_words(block, scale.map));
  if (clicked()) frame.commands.look([cell](View& v) { pin(v, cell); });
}

}  // namespace app::widgets
