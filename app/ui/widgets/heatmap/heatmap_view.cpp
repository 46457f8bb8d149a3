#include "app/ui/widgets/heatmap/heatmap_view.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <limits>

#include "app/session/navigation.hpp"
#include "app/session/picture_source.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/heatmap/heatmap_drawn.hpp"
#include "core/base/color.hpp"

namespace app::widgets {

namespace {

using core::attention::Coloring;
using core::attention::Columns;
using core::attention::StageInfo;

bool is_weight(Stage stage) {
  return stage == Stage::weights || stage == Stage::dropped_weights || stage == Stage::zeroed_weights;
}

/// Returns the numbers that a heatmap shows.
HeatmapNumbers shown_numbers(const Frame& frame, const Heatmap& map) {
  if (map.other) return HeatmapNumbers(*map.other->numbers);
  return HeatmapNumbers(frame.displayed.trace.at(map.stage, map.head));
}

/// Returns whether cells dropped by dropout are marked here.
bool marks_dropped(const Heatmap& map) {
  return !map.other && (map.stage == Stage::dropout_mask || map.stage == Stage::dropped_weights);
}

const arma::mat* kept_cells(const Frame& frame, const Heatmap& map) {
  if (map.other) return map.other->kept;
  return marks_dropped(map) ? &*frame.displayed.trace.at(Stage::dropout_mask, map.head) : nullptr;
}

constexpr float flash_strength = 0.35f;

/// Returns the brightness of the flash, 0 … 1; 0 during a drag, so that numbers stay legible.
float flash(const Frame& frame) {
  if (frame.settings.reduce_motion || frame.work.changes->is_under_way()) return 0;
  return static_cast<float>(std::clamp(1 - frame.work.changes->seconds() / flash_seconds, 0.0, 1.0));
}

}  // namespace

bool is_ready(const Frame& frame, Stage stage, std::size_t head) {
  return !frame.work.source || frame.work.source->is_ready(stage, head);
}

const ValueRange& stage_value_range(const Frame& frame, Stage stage, std::size_t head) {
  if (!is_ready(frame, stage, head)) return frame.work.value_ranges.last(stage, head);
  const ValueRange* known = frame.work.source ? frame.work.source->number_range(stage, head) : nullptr;
  return known ? frame.work.value_ranges.remember(frame.displayed.version, stage, head, *known)
               : frame.work.value_ranges.of(frame.displayed.trace, frame.displayed.version, stage, head);
}

const ClippedCounts* out_of_range_counts(const Frame& frame, Stage stage, std::size_t head,
                                         const ColorLimits& range) {
  return !frame.work.source || frame.work.source->is_small(stage, head)
             ? &frame.work.value_ranges.clipped_counts(frame.displayed.trace, frame.displayed.version, stage,
                                                       head, range)
             : frame.work.source->clipped_counts(stage, head, range);
}

bool has_cells_of_stage(const Heatmap& map) {
  return !map.other || map.other->shows_stage;
}

bool marks_masked(const Heatmap& map) {
  return map.other ? map.other->has_token_axes || map.other->visible : is_weight(map.stage);
}

const arma::mat* displayed_mask(const Frame& frame, const Heatmap& map) {
  if (!marks_masked(map)) return nullptr;
  if (map.other && map.other->visible) return map.other->visible;
  return frame.work.source ? frame.work.source->visible() : &*frame.displayed.trace.at(Stage::mask);
}

bool is_masked(const Frame& frame, const Heatmap& map, std::size_t row, std::size_t column) {
  if (!marks_masked(map) || shown_numbers(frame, map)(row, column) != 0) return false;
  return map.other && map.other->visible ? (*map.other->visible)(row, column) == 0
                                         : frame.displayed.trace.at(Stage::mask)(row, column) == 0;
}

bool is_dropped(const Frame& frame, const Heatmap& map, std::size_t row, std::size_t column) {
  if (map.other) return map.other->kept && (*map.other->kept)(row, column) == 0;
  return marks_dropped(map) && frame.displayed.trace.at(Stage::dropout_mask, map.head)(row, column) == 0;
}

Coloring coloring_of(const Heatmap& map) {
  return map.other && map.other->coloring ? *map.other->coloring : core::attention::info(map.stage).coloring;
}

ColorLimits color_limits(const Frame& frame, Stage stage, std::size_t head) {
  const auto number_range = [&](Stage of, std::size_t h) {
    // While a number is dragged the color range is fixed, so that changes are visible.
    if (frame.work.changes && frame.work.changes->is_under_way())
      if (const auto* before = previous_numbers(frame, of, h)) return value_range(*before);
    return stage_value_range(frame, of, h);
  };
  return app::color_limits(frame.displayed.look.colors, frame.displayed.model, frame.displayed.stages,
                           number_range, stage, head);
}

std::map<std::pair<Stage, std::size_t>, ColorLimits> all_color_ends(const Frame& frame) {
  std::map<std::pair<Stage, std::size_t>, ColorLimits> ends;
  for (const StageInfo& stage : core::attention::stages()) {
    if (!frame.displayed.has(stage.stage)) continue;
    for (std::size_t h = 0; h < stage.count(frame.displayed.trace.n_heads()); ++h)
      ends[{stage.stage, h}] = color_limits(frame, stage.stage, h);
  }
  return ends;
}

ColorScale scale_of(const Frame& frame, const Heatmap& map) {
  const ColorLimits ends = map.other ? map.other->ends : color_limits(frame, map.stage, map.head);
  return {chosen_map(frame.displayed.look.colors, coloring_of(map)), frame.palette.dark, ends};
}

ValueRange displayed_value_range(const Frame& frame, const Heatmap& map) {
  if (!map.other) return stage_value_range(frame, map.stage, map.head);
  return map.other->number_range ? *map.other->number_range : value_range(*map.other->numbers);
}

render::HeatmapPicture picture_of(const Frame& frame, const Heatmap& map, const HeatmapLayout& d,
                                  const ColorScale& scale) {
  render::HeatmapPicture picture;
  picture.place = map.place;
  if (frame.work.source && !map.other) picture.cells.rows = frame.work.source->rows(map.stage, map.head);
  picture.cells.visible = displayed_mask(frame, map);
  picture.cells.version = map.other ? map.other->version : frame.displayed.version;
  picture.map = scale.map;
  picture.dark = scale.dark;
  picture.low = scale.ends.low, picture.high = scale.ends.high;
  picture.least = scale.is_logarithmic() ? scale.ends.least : 0;
  picture.dots = !number_style(frame, map, d).font;
  picture.width = map.width, picture.height = map.height;
  picture.part = {d.part.left, d.part.top, d.part.right, d.part.bottom};
  picture.cross = d.cross;
  picture.phase = static_cast<int>(d.corner.x + d.corner.y) % 6;
  picture.pending = (marks_masked(map) && !picture.cells.visible) ||
                    (!map.other && ((!render::has_rows(picture) && !is_ready(frame, map.stage, map.head)) ||
                                    (marks_dropped(map) && !is_ready(frame, Stage::dropout_mask, map.head))));
  if (picture.pending) {
    picture.cells.rows = {};
    return picture;
  }
  picture.cells.kept = kept_cells(frame, map);
  if (render::has_rows(picture)) {
    picture.cells.change = frame.work.source->change(map.head);
    picture.cells.flags_version = frame.work.source->mask_version();
  } else {
    picture.cells.numbers = &static_cast<const arma::mat&>(d.numbers);
  }
  return picture;
}

const core::attention::StageMatrix* previous_numbers(const Frame& frame, Stage stage, std::size_t head) {
  if (!frame.work.changes || !frame.work.changes->trace()) return nullptr;
  return frame.work.changes->before(stage, head, frame.displayed.trace.at(stage, head));
}

void draw_changes(const Frame& frame, const Heatmap& map, const HeatmapLayout& d) {
  const auto* before = map.other ? nullptr : previous_numbers(frame, map.stage, map.head);
  const float least = frame.metrics.px(8);
  if (!before || d.cell_width < least || d.cell_height < least) return;
  const float strength = flash(frame) * flash_strength, thick = std::max(1.0f, frame.metrics.px(1));
  const ColorScale scale = scale_of(frame, map);
  const CellRange shown = cells_on_screen(d);
  for (std::size_t i = shown.row0; i < shown.row1; ++i)
    for (std::size_t j = shown.column0; j < shown.column1; ++j) {
      if (!differs((*before)(i, j), d.numbers(i, j))) continue;
      const ImVec2 a = d.cell_min(i, j), b = d.cell_max(i, j);
      if (strength > 0) draw_rect(a, {b.x - 1, b.y - 1}, packed(frame.palette.selection, strength));
      const double v = d.numbers(i, j);
      const Rgb background = std::isfinite(v) ? scale.color(v) : frame.palette.hatch.background;
      const float inset = std::round((b.x - a.x) * 0.15f);
      draw_rect({a.x + inset, b.y - 1 - thick}, {b.x - inset - 1, b.y - 1},
                packed(readable_on(background), 0.9f));
    }
}

namespace {

constexpr double wheel_step = 1.25;

/// Returns the position under the mouse, in cells.
ImVec2 place_under(const HeatmapLayout& d, ImVec2 mouse) {
  return {static_cast<float>(d.part.left) + (mouse.x - d.corner.x) / d.cell_width,
          static_cast<float>(d.part.top) + (mouse.y - d.corner.y) / d.cell_height};
}

std::size_t cell_at(float place, std::size_t count) {
  return static_cast<std::size_t>(std::clamp(std::floor(place), 0.0f, static_cast<float>(count - 1)));
}

/// The cells pooled in one pixel, and the cell described: the displayed one, or the one under the mouse.
struct PooledBlock {
  std::size_t row0 = 0, row1 = 1, column0 = 0, column1 = 1;
  std::size_t row = 0, column = 0;
  std::size_t count() const { return (row1 - row0) * (column1 - column0); }
};

PooledBlock block_at(const HeatmapLayout& d, render::ColorMap map, const render::Pooling& pooled,
                     std::size_t row, std::size_t column) {
  PooledBlock b;
  b.row0 = row / pooled.rows * pooled.rows, b.column0 = column / pooled.columns * pooled.columns;
  b.row1 = std::min<std::size_t>(b.row0 + pooled.rows, d.numbers.n_rows);
  b.column1 = std::min<std::size_t>(b.column0 + pooled.columns, d.numbers.n_cols);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  b.row = row, b.column = column;
  if (map == render::ColorMap::mask) return b;  // the picture shows the mean of the block
  // As in the picture: NaN wins, −∞ loses, else the largest, of signed numbers the one farthest from 0.
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

/// Returns "this pixel shows the largest of 16 cells: rows 8 … 11, columns 0 … 3", or "" for one cell.
std::string pooled_words(const PooledBlock& b, render::ColorMap map) {
  if (b.count() < 2) return "";
  const auto span = [](std::size_t from, std::size_t to) {
    return from + 1 == to ? " " + std::to_string(from) : fmt::format("s {} … {}", from, to - 1);
  };
  return fmt::format("this pixel shows the {} of {} cells: row{}, column{}", core::color::pooling_label(map),
                     b.count(), span(b.row0, b.row1), span(b.column0, b.column1));
}

/// Zooms around the mouse with the wheel, unless the wheel scrolls, as it does with Shift.
void zoom_by_wheel(const Frame& frame, const HeatmapLayout& d, const CellRef& cell, ImVec2 place) {
  const ImGuiIO& io = ImGui::GetIO();
  if (io.MouseWheel == 0 || io.KeyShift ||
      wheel_scrolls(frame.displayed.selection, io.MousePos.x, io.MousePos.y))
    return;
  const MatrixShape shape{d.numbers.n_rows, d.numbers.n_cols};
  if (!wheel_zooms(frame.displayed.look, frame.displayed.selection, cell, shape, io.KeyCtrl)) return;
  const double factor = std::pow(wheel_step, -static_cast<double>(io.MouseWheel));
  frame.commands.add(Zoom{shape, place.y, place.x, factor});
}

/// Pans while the map is dragged; returns whether it is, farther than a click may move.
bool pan_by_drag(const Frame& frame, const HeatmapLayout& d) {
  if (!ImGui::IsItemActive() || !ImGui::IsMouseDragging(ImGuiMouseButton_Left)) return false;
  const ImVec2 by = ImGui::GetIO().MouseDelta;
  const MatrixShape shape{d.numbers.n_rows, d.numbers.n_cols};
  if (by.x != 0 || by.y != 0) frame.commands.add(Pan{shape, -by.y / d.cell_height, -by.x / d.cell_width});
  return true;
}

/// Returns whether the map was pressed and released without a drag between.
bool clicked() {
  const ImGuiIO& io = ImGui::GetIO();
  const float most = io.MouseDragThreshold;
  return ImGui::IsItemDeactivated() && ImGui::IsItemHovered() &&
         ImGui::IsMouseReleased(ImGuiMouseButton_Left) &&
         io.MouseDragMaxDistanceSqr[ImGuiMouseButton_Left] < most * most;
}

/// Draws the button that resets the zoom, in the corner of a map that shows a part of its cells.
void draw_fit_button(const Frame& frame, const Heatmap& map, const HeatmapLayout& d) {
  const MatrixShape shape{d.numbers.n_rows, d.numbers.n_cols};
  if (map.whole || !has_cells_of_stage(map) || !frame.displayed.look.zoomed.contains(shape)) return;
  const char* words = "zoomed · fit (F)";
  ImFont* font = frame.fonts.sans12;
  const float pad = frame.metrics.px(4), width = text_width(font, words) + 2 * pad,
              height = platform::font_size(font) + frame.metrics.px(4);
  if (width > d.far.x - d.corner.x || height > d.far.y - d.corner.y) return;
  const ImVec2 min{d.far.x - width, d.corner.y}, max{d.far.x, d.corner.y + height};
  platform::move_to(min);
  const bool pressed = hit_area((map.place + "/fit").c_str(), {width, height});
  frame.landmarks.mark_item(map.place + "/fit");
  draw_rect(min, max, frame.palette.background.raised);
  draw_text(font, {min.x + pad, (min.y + max.y) / 2}, Align::left_middle,
            ImGui::IsItemHovered() ? frame.palette.text : frame.palette.dim, words);
  draw_focus(frame, min, max);
  if (pressed) frame.commands.add(ResetZoom{shape});
}

}  // namespace

void handle_mouse(const Frame& frame, const Heatmap& map, const HeatmapLayout& d) {
  draw_fit_button(frame, map, d);  // added before the map, which would capture the mouse
  platform::move_to(d.corner);
  hit_area(map.place.c_str(), {d.far.x - d.corner.x, d.far.y - d.corner.y});
  frame.landmarks.mark_item(map.place);
  if (pan_by_drag(frame, d)) return ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  if (!ImGui::IsItemHovered()) return;
  const ImVec2 place = place_under(d, ImGui::GetIO().MousePos);
  const ColorScale scale = scale_of(frame, map);
  const PooledBlock block = block_at(d, scale.map, render::pooling(picture_of(frame, map, d, scale)),
                                     cell_at(place.y, d.numbers.n_rows), cell_at(place.x, d.numbers.n_cols));
  const CellRef cell{map.stage, d.stage.per_head ? map.head : 0, block.row, block.column};
  if (!has_cells_of_stage(map)) {
    const std::string where = fmt::format("{}, {}", cell.row, cell.column);
    ImGui::SetTooltip("%s: %s", where.c_str(), display_number(d.numbers(cell.row, cell.column)).c_str());
    return;
  }
  zoom_by_wheel(frame, d, cell, place);
  frame.commands.add(set<&Selection::hovered>(cell));
  if (!map.other) draw_cell_tooltip(frame, cell, pooled_words(block, scale.map));
  if (clicked()) frame.commands.add(PinCell{cell});
}

namespace {

/// Sets the cross of the pinned cell; other stages share its token rows and columns, not its features.
void set_cross(const Frame& frame, const Heatmap& map, HeatmapLayout& d) {
  const std::optional<CellRef>& pinned = frame.displayed.selection.pinned;
  if (!pinned || (!has_cells_of_stage(map) && !map.other->has_token_axes)) return;
  const StageInfo& from = core::attention::info(pinned->stage);
  const bool here = pinned->stage == map.stage && shows_head(frame, map, pinned->head);
  const bool other_keys = !frame.displayed.sequence().key_tokens.empty();
  if (!here && other_keys && d.stage.rows != from.rows && from.columns != Columns::tokens) return;
  const bool both_tokens = from.columns == Columns::tokens && d.stage.columns == Columns::tokens;
  if (here || both_tokens) {
    d.cross = render::Cross{pinned->row, pinned->column};
  } else {
    // Without such a column only the row stays bright; for keys and values, that of the key.
    const bool of_key = from.columns == Columns::tokens && d.stage.rows == core::attention::RowTokens::keys;
    d.cross = render::Cross{of_key ? pinned->column : pinned->row, d.numbers.n_cols};
    d.row_only = true;
  }
}

/// Returns the displayed part; numbers other than a stage's are displayed whole.
CellWindow displayed_part(const Frame& frame, const Heatmap& map, const HeatmapNumbers& numbers) {
  const MatrixShape shape{numbers.n_rows, numbers.n_cols};
  return has_cells_of_stage(map) && !map.whole ? displayed_window(frame.displayed.look, shape)
                                               : all_cells(shape);
}

HeatmapLayout lay_out_heatmap(const Frame& frame, const Heatmap& map, ImVec2 corner) {
  const HeatmapNumbers numbers = shown_numbers(frame, map);
  const ImVec2 size(static_cast<float>(map.width), static_cast<float>(map.height));
  const CellWindow part = displayed_part(frame, map, numbers);
  HeatmapLayout d{core::attention::info(map.stage),
                  numbers,
                  corner,
                  {corner.x + size.x, corner.y + size.y},
                  part,
                  size.x / static_cast<float>(part.right - part.left),
                  size.y / static_cast<float>(part.bottom - part.top),
                  {}};
  set_cross(frame, map, d);
  return d;
}

}  // namespace

bool shows_head(const Frame& frame, const Heatmap& map, std::size_t head) {
  const auto& model = frame.displayed.model;
  return matrix_of_head(model, map.stage, head) == matrix_of_head(model, map.stage, map.head);
}

CellRange cells_on_screen(const HeatmapLayout& d) {
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

void draw_picture(const Frame& frame, const Heatmap& map, ImVec2 corner) {
  const HeatmapLayout d = lay_out_heatmap(frame, map, {std::round(corner.x), std::round(corner.y)});
  const ImTextureID pixels = frame.painter.paint(picture_of(frame, map, d, scale_of(frame, map)));
  ImGui::GetWindowDrawList()->AddImage(pixels, d.corner, d.far);
}

void draw_heatmap(const Frame& frame, const Heatmap& map, ImVec2 top_left) {
  if (map.of_gradient && !map.other) return draw_gradient_map(frame, map, top_left);
  const HeatmapLayout d = lay_out_heatmap(
      frame, map,
      {std::round(top_left.x + map.label_width), std::round(top_left.y + column_label_height(frame, map))});
  if (ImGui::IsRectVisible(top_left, {d.far.x, d.far.y + frame.metrics.px(30)})) {
    const ColorScale scale = scale_of(frame, map);
    ImDrawList* list = ImGui::GetWindowDrawList();
    list->AddImage(frame.painter.paint(picture_of(frame, map, d, scale)), d.corner, d.far);
    draw_row_labels(frame, map, d);
    draw_column_labels(frame, map, d);
    list->PushClipRect(d.corner, d.far, true);
    draw_masked(frame, map, d, scale);
    draw_numbers(frame, map, d, scale);
    list->PopClipRect();
    draw_marks(frame, map, d);
    if (map.gutter_width > 0) draw_gutters(frame, map, d);
    if (map.show_bar) draw_color_bar(frame, map, d, scale);
  }
  handle_mouse(frame, map, d);
}

}  // namespace app::widgets
