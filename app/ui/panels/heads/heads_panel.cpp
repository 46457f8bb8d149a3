#include "app/ui/panels/heads/heads_panel.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/ui/panels/heads/head_figures.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"
#include "app/ui/widgets/hit_area.hpp"

namespace app::panels {
namespace {

using core::attention::Columns;
using core::attention::HeadFigure;
using core::attention::StageInfo;

/// Where the small multiples stand: equal tiles in as many columns as make the pictures largest.
struct Tiling {
  std::size_t columns = 1;
  int width = 0, height = 0;  // of one picture
  float tile_width = 0, tile_height = 0;
  bool row_tokens = true, column_tokens = true;
};

int whole_cells(float room, std::size_t count, float largest_pitch) {
  const int n = static_cast<int>(count);
  if (room < static_cast<float>(n)) return std::max(1, static_cast<int>(room));
  return n * static_cast<int>(std::min(std::floor(room / static_cast<float>(n)), largest_pitch));
}

/// A token × token picture: cells as large as there is room, at most twice as wide as high, when they can
/// hold numbers; else squares.
void fit_square(const Metrics& m, float width, float height, std::size_t n, Tiling& t) {
  const float count = static_cast<float>(n), across = std::floor(width / count),
              down = std::floor(height / count);
  const float wide = std::min(across, 2 * down), high = std::min(down, wide);
  if (wide >= m.px(27) && high >= m.px(16)) {
    t.width = static_cast<int>(n) * static_cast<int>(std::min(wide, m.px(110)));
    t.height = static_cast<int>(n) * static_cast<int>(std::min(high, m.px(76)));
  } else {
    t.width = t.height = whole_cells(std::min(width, height), n, m.px(40));
  }
}

Tiling tile(const Frame& frame, const StageInfo& stage, ImVec2 room) {
  const auto& m = frame.metrics;
  const core::attention::StageMatrix& numbers = stage.matrix(frame.shown.trace, 0);
  const std::size_t n = core::attention::n_matrices(frame.shown.model, stage.stage);
  const bool square = stage.columns == Columns::tokens;
  const float foot = m.px(34), gap = m.px(14);
  Tiling best;
  for (std::size_t columns = 1; columns <= n; ++columns) {
    Tiling t;
    t.columns = columns;
    const std::size_t rows = (n + columns - 1) / columns;
    t.row_tokens = t.column_tokens = numbers.n_rows() <= 64 && n <= 12;
    const float labels = m.px(t.row_tokens ? 70 : 34), head = m.px(t.column_tokens && square ? 34 : 19);
    const float w = room.x / static_cast<float>(columns) - labels - gap,
                h = room.y / static_cast<float>(rows) - head - foot - gap;
    if (w < m.px(60)) break;
    const float usable_height = std::max(h, m.px(square ? 110 : 60));
    if (square) {
      fit_square(m, w, usable_height, numbers.n_cols(), t);
    } else {
      t.width = whole_cells(w, numbers.n_cols(), m.px(52));
      t.height = whole_cells(usable_height, numbers.n_rows(), m.px(26));
    }
    t.tile_width = labels + static_cast<float>(t.width) + gap;
    t.tile_height = head + static_cast<float>(t.height) + foot + gap;
    const auto area = [](const Tiling& x) { return static_cast<double>(x.width) * x.height; };
    if (area(t) > area(best) * 1.001) best = t;
  }
  return best;
}

/// The heads whose pictures stand there: all in their order, or the first of each group that shares a matrix.
std::vector<std::size_t> pictured_heads(const Frame& frame, const StageInfo& stage) {
  const auto& model = frame.shown.model;
  const std::size_t n = core::attention::n_matrices(model, stage.stage);
  if (stage.per_head && n == model.n_heads) return sorted_heads(frame);
  std::vector<std::size_t> heads;
  for (std::size_t k = 0; k < n; ++k) heads.push_back(core::attention::head_of_matrix(model, stage.stage, k));
  return heads;
}

/// The figure that stands under every head: what they are sorted by, else the entropy.
HeadFigure shown_figure(const Frame& frame) {
  return frame.shown.look.heads_order.value_or(HeadFigure::entropy);
}

/// Name and figure under a picture, and the figure as a bar.
void draw_caption(const Frame& frame, Stage stage, std::size_t h, bool chosen, ImVec2 at, float width) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Rgb ink = chosen ? frame.palette.text : frame.palette.dim;
  const float middle = at.y + frame.metrics.px(16);
  if (core::attention::n_matrices(frame.shown.model, stage) < frame.shown.model.n_heads) {
    widgets::draw_text(frame.fonts.sans14, {at.x, middle}, widgets::Align::left_middle, packed(ink),
                       widgets::head_words(frame.shown.model, stage, h));
    return;  // figures are of heads
  }
  const auto& value = head_facts(frame)[h].*core::attention::info(shown_figure(frame)).value;
  const std::string number = figure_text(shown_figure(frame), value, frame.shown.model.n_keys()),
                    name = "head " + std::to_string(h) + (frame.shown.model.is_off(h) ? " · off" : "");
  widgets::draw_text(frame.fonts.sans14, {at.x, middle}, widgets::Align::left_middle, packed(ink), name);
  const float room = width - widgets::text_width(frame.fonts.sans14, name) - frame.metrics.px(6);
  if (widgets::text_width(frame.fonts.mono12, number) <= room)
    widgets::draw_text(frame.fonts.mono12, {at.x + width, middle}, widgets::Align::right_middle, packed(ink),
                       number);
  const float top = at.y + frame.metrics.px(27), bottom = top + frame.metrics.px(3);
  list->AddRectFilled({at.x, top}, {at.x + width, bottom}, packed(frame.palette.control.rest));
  const double share = value ? std::clamp(*value / figure_top(frame, shown_figure(frame)), 0.0, 1.0) : 0;
  list->AddRectFilled({at.x, top}, {at.x + width * static_cast<float>(share), bottom},
                      packed(chosen ? frame.palette.accent : frame.palette.faint));
}

void draw_tile(const Frame& frame, const StageInfo& stage, const Tiling& t, std::size_t h, std::size_t place,
               ImVec2 origin) {
  const auto& m = frame.metrics;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const std::size_t column = place % t.columns, row = place / t.columns;
  widgets::Heatmap map;
  map.place = "heads/" + std::to_string(h);
  map.stage = stage.stage;
  map.head = h;
  map.width = t.width, map.height = t.height;
  map.row_tokens = t.row_tokens && column == 0;
  map.column_tokens = t.column_tokens && row == 0;
  map.label_width = m.px(t.row_tokens ? 70 : 34);
  map.show_bar = false;
  const ImVec2 corner{origin.x + static_cast<float>(column) * t.tile_width,
                      origin.y + static_cast<float>(row) * t.tile_height};
  const float drop = t.column_tokens && stage.columns == Columns::tokens && !map.column_tokens ? m.px(15) : 0;
  const float left = std::round(corner.x + map.label_width);
  const float top = std::round(corner.y + drop + widgets::column_label_height(frame, map));
  const float bottom = top + static_cast<float>(t.height), width = static_cast<float>(t.width),
              right = left + width;
  const ImVec2 tile_min{left - m.px(8), top - m.px(22)}, tile_max{right + m.px(8), bottom + m.px(36)};
  if (stage.per_head && h == frame.shown.selection.hovered_head)
    list->AddRectFilled(tile_min, tile_max, packed(frame.palette.ground.raised), m.px(3));
  widgets::draw_heatmap(frame, map, {corner.x, corner.y + drop});
  if (!stage.per_head) {
    widgets::draw_text(frame.fonts.sans14, {left, bottom + m.px(16)}, widgets::Align::left_middle,
                       packed(frame.palette.dim), "all heads");
    return;
  }
  const auto& model = frame.shown.model;
  const bool chosen =
      matrix_of_head(model, stage.stage, h) == matrix_of_head(model, stage.stage, frame.shown.look.head);
  if (chosen)
    widgets::outline(list, {left - 5, top - 5}, {right + 4, bottom + 4}, packed(frame.palette.selection), 2);
  draw_caption(frame, stage.stage, h, chosen, {left, bottom}, width);
  ImGui::SetCursorScreenPos({left, bottom + m.px(6)});
  const bool pressed = widgets::hit_area(("choose head " + std::to_string(h)).c_str(), {width, m.px(26)});
  frame.landmarks.mark_item("heads/name/" + std::to_string(h));
  if (ImGui::IsItemFocused() && ImGui::GetIO().NavVisible)
    widgets::outline(list, ImGui::GetItemRectMin(), ImGui::GetItemRectMax(), packed(frame.palette.accent), 2);
  if (pressed) frame.commands.look([h](View& v) { v.look.head = h; });
  if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(0))
    frame.commands.look([h](View& v) { v.look.head = h, v.look.tab = Tab::stages; });
  if (ImGui::IsWindowHovered(ImGuiHoveredFlags_AllowWhenBlockedByActiveItem) &&
      ImGui::IsMouseHoveringRect(tile_min, tile_max))
    frame.commands.look([h](View& v) { v.selection.hovered_head = h; });
}

}  // namespace

void draw_heads(const Frame& frame) {
  const StageInfo& stage = core::attention::info(frame.shown.look.heads_stage);
  const float scrollbar = ImGui::GetStyle().ScrollbarSize;
  const ImVec2 room{ImGui::GetContentRegionAvail().x - scrollbar,
                    ImGui::GetContentRegionAvail().y - frame.metrics.px(34)};
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const Tiling t = tile(frame, stage, room);
  const std::vector<std::size_t> order = pictured_heads(frame, stage);
  for (std::size_t place = 0; place < order.size(); ++place)
    draw_tile(frame, stage, t, order[place], place, origin);
  const float height = static_cast<float>((order.size() + t.columns - 1) / t.columns) * t.tile_height;
  if (stage.per_head && order.size() == frame.shown.model.n_heads) {
    const std::string words = "bar under a head: " + figure_words(frame, shown_figure(frame));
    widgets::draw_text(
        frame.fonts.sans13,
        {origin.x + frame.metrics.px(t.row_tokens ? 70 : 34), origin.y + height + frame.metrics.px(4)},
        widgets::Align::left_middle, packed(frame.palette.faint),
        widgets::shortened(frame.fonts.sans13, words, room.x * 0.8f));
  }
  ImGui::SetCursorScreenPos(origin);
  ImGui::Dummy({room.x, std::max(1.0f, height + frame.metrics.px(14))});
}

}  // namespace app::panels
