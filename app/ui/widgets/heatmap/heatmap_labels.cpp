#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/heatmap/heatmap_drawn.hpp"
#include "core/graph/explain.hpp"

namespace app::widgets {

namespace {

using core::attention::Columns;

constexpr float max_rotated_length = 64, max_horizontal_length = 72;  // at scale 1
constexpr std::size_t max_rotated_labels = 64;

/// Returns whether index k has a label: every step-th, and the chosen one, which displaces its neighbors.
bool has_label(std::size_t k, std::size_t step, std::optional<std::size_t> chosen) {
  if (chosen == k) return true;
  if (k % step != 0) return false;
  if (!chosen || step == 1) return true;
  return (k > *chosen ? k - *chosen : *chosen - k) >= step;
}

/// Returns whether a token has a name other than its index.
bool has_name(const std::vector<std::string>& tokens, std::size_t k) {
  return k < tokens.size() && tokens[k] != std::to_string(k);
}

/// Draws names above the columns instead of indices.
void draw_column_names(const Frame& frame, const Heatmap& map, const HeatmapLayout& d) {
  const std::size_t step = label_step(d.cell_width, frame.metrics.px(34));
  for (std::size_t j = 0; j < d.numbers.n_cols; j += step) {
    if (!d.shows_column(j)) continue;
    draw_text(frame.fonts.sans12, {d.x(static_cast<double>(j) + 0.5), d.corner.y - frame.metrics.px(9)},
              Align::middle, frame.palette.dim,
              shortened(frame.fonts.sans12, (*map.other->columns)[j],
                        d.cell_width * static_cast<float>(step) - frame.metrics.px(2)));
  }
}

/// Returns the tokens that name the columns.
const std::vector<std::string>& column_tokens(const Frame& frame, const Heatmap& map) {
  return map.other && map.other->shows_stage && map.other->keys ? *map.other->keys
                                                                : frame.displayed.sequence().keys();
}

bool has_column_tokens(const Heatmap& map) {
  return map.columns == ColumnLabels::tokens && core::attention::info(map.stage).columns == Columns::tokens;
}

/// Returns the width of a name above its column, at most that of a label.
float name_width(const Frame& frame, const std::vector<std::string>& tokens, std::size_t j) {
  if (j >= tokens.size()) return 0;
  return std::min(text_width(frame.fonts.sans12, visible_token(tokens[j])),
                  scaled_with_text(frame, max_horizontal_length));
}

/// Returns whether the names of every step-th column fit without touching.
bool names_fit(const Frame& frame, const std::vector<std::string>& tokens, std::size_t step, float pitch) {
  const float gap = frame.metrics.px(4), room = pitch * static_cast<float>(step);
  for (std::size_t j = 0; j < tokens.size(); j += step) {
    const float width = name_width(frame, tokens, j);
    if (j + step < tokens.size() && (width + name_width(frame, tokens, j + step)) / 2 + gap > room)
      return false;
  }
  return true;
}

/// Layout of the column names: horizontal or rotated, at every step-th column.
struct ColumnNames {
  bool rotated = false;
  std::size_t step = 1;
};

/// Returns horizontal names if all fit; else rotated ones, if every fourth column can have one; else
/// horizontal ones for some columns.
ColumnNames column_names(const Frame& frame, const std::vector<std::string>& tokens, float pitch) {
  if (tokens.size() <= max_rotated_labels) {
    if (names_fit(frame, tokens, 1, pitch)) return {};
    if (pitch >= platform::font_size(frame.fonts.sans12)) return {true, 1};
    for (const std::size_t step : {2u, 4u})
      if (static_cast<float>(step) * pitch >= platform::font_size(frame.fonts.sans12)) return {true, step};
  }
  const float index = text_width(frame.fonts.mono12, std::to_string(tokens.size())) + frame.metrics.px(6);
  return {false, label_step(pitch, std::max(index, scaled_with_text(frame, 34)))};
}

}  // namespace

void draw_row_labels(const Frame& frame, const Heatmap& map, const HeatmapLayout& d) {
  if (map.label_width <= 0) return;
  const auto& tokens =
      map.other && map.other->rows ? *map.other->rows : row_tokens(d.stage, frame.displayed.sequence());
  const float index_right = d.corner.x - frame.metrics.px(6);
  // Names a little too high for their rows get a smaller font; if they still do not fit, rows are skipped.
  ImFont* font = d.cell_height + 0.01f >= platform::font_size(frame.fonts.sans13) ? frame.fonts.sans13
                                                                                  : frame.fonts.sans12;
  const std::size_t step = label_step(d.cell_height + 0.01f, platform::font_size(font));
  const float digits = text_width(frame.fonts.mono12, std::to_string(tokens.size() - 1));
  const auto chosen = d.cross ? std::optional(d.cross->row) : std::nullopt;
  for (std::size_t i = 0; i < d.numbers.n_rows; ++i) {
    if (!d.shows_row(i) || !has_label(i, step, chosen)) continue;
    const bool bright = chosen == i;
    const float middle = d.middle_of_row(i);
    draw_text(frame.fonts.mono12, {index_right, middle}, Align::right_middle,
              bright ? frame.palette.text : frame.palette.faint, std::to_string(i));
    if (!map.row_tokens || !has_name(tokens, i)) continue;
    const float right = index_right - digits - frame.metrics.px(5);
    const float room = right - (d.corner.x - map.label_width);
    draw_text(font, {right, middle}, Align::right_middle, bright ? frame.palette.text : frame.palette.dim,
              shortened(font, visible_token(tokens[i]), room));
  }
}

void draw_column_labels(const Frame& frame, const Heatmap& map, const HeatmapLayout& d) {
  if (map.columns == ColumnLabels::none) return;
  if (map.other && map.other->columns) return draw_column_names(frame, map, d);
  const bool named = has_column_tokens(map);
  const auto& tokens = column_tokens(frame, map);
  const float index = text_width(frame.fonts.mono12, std::to_string(d.numbers.n_cols)) + frame.metrics.px(6);
  const ColumnNames names = named ? column_names(frame, tokens, d.cell_width) : ColumnNames{};
  const std::size_t index_step = std::max(names.rotated ? 1 : names.step, label_step(d.cell_width, index));
  const auto chosen = d.cross && !d.row_only ? std::optional(d.cross->column) : std::nullopt;
  const float index_middle = d.corner.y - scaled_with_text(frame, 9),
              height = column_label_height(frame, map);
  for (std::size_t j = 0; j < d.numbers.n_cols; ++j) {
    if (!d.shows_column(j)) continue;
    const bool bright = chosen == j;
    const float middle = d.x(static_cast<double>(j) + 0.5);
    if (has_label(j, index_step, chosen))
      draw_text(frame.fonts.mono12, {middle, index_middle}, Align::middle,
                bright ? frame.palette.text : frame.palette.faint, std::to_string(j));
    if (!named || !has_name(tokens, j) || !has_label(j, names.step, chosen)) continue;
    const ImU32 ink = packed(bright ? frame.palette.text : frame.palette.dim);
    if (names.rotated) {
      draw_text_rotated(
          frame.fonts.sans12, {middle, d.corner.y - scaled_with_text(frame, 18)}, ink,
          shortened(frame.fonts.sans12, visible_token(tokens[j]), height - scaled_with_text(frame, 20)));
      continue;
    }
    const float room = names.step == 1 ? scaled_with_text(frame, max_horizontal_length)
                                       : d.cell_width * static_cast<float>(names.step) - frame.metrics.px(4);
    draw_text(frame.fonts.sans12, {middle, index_middle - scaled_with_text(frame, 15)}, Align::middle, ink,
              shortened(frame.fonts.sans12, visible_token(tokens[j]), room));
  }
}

float column_label_height(const Frame& frame, const Heatmap& map) {
  if (map.columns == ColumnLabels::none) return 0;
  if (!has_column_tokens(map) || (map.other && map.other->columns)) return scaled_with_text(frame, 18);
  const auto& tokens = column_tokens(frame, map);
  const float pitch = static_cast<float>(map.width) /
                      static_cast<float>(std::max<std::size_t>(1, frame.displayed.model.n_keys()));
  if (!column_names(frame, tokens, pitch).rotated) return scaled_with_text(frame, 32);
  float longest = 0;
  for (const std::string& token : tokens) longest = std::max(longest, text_width(frame.fonts.sans12, token));
  return scaled_with_text(frame, 20) + std::min(longest, scaled_with_text(frame, max_rotated_length));
}

namespace {

using core::attention::Coloring;
using core::attention::RowStatistics;

constexpr float min_line_height = 14;

/// One column of row statistics, and the maximum of its bars.
struct Gutter {
  const char* title;
  const char* about;
  double RowStatistics::*figure;
  double top;
};

/// Draws a number, or a bar where rows are too low for a number.
void draw_row_statistic(const Frame& frame, const HeatmapLayout& d, const Gutter& gutter, double v,
                        float left, float right, std::size_t row) {
  const float middle = d.y(static_cast<double>(row) + 0.5);
  const bool chosen = d.cross && d.cross->row == row;
  if (d.cell_height >= frame.metrics.px(min_line_height)) {
    draw_text(frame.fonts.mono12, {right, middle}, Align::right_middle,
              chosen ? frame.palette.text : frame.palette.dim,
              std::abs(v) < 1000 ? fixed(v, 3) : scientific(v));
    return;
  }
  const float share =
      static_cast<float>(gutter.top > 0 ? std::clamp(std::abs(v) / gutter.top, 0.0, 1.0) : 0.0);
  const float half = std::max(0.5f, d.cell_height / 2 - (d.cell_height > 4 ? 1.0f : 0.0f));
  draw_rect({left, middle - half}, {left + (right - left) * share, middle + half},
            chosen ? frame.palette.text : frame.palette.dim);
}

}  // namespace

int gutter_count(Stage stage) {
  const auto& info = core::attention::info(stage);
  if (info.columns != Columns::tokens) return 0;
  return info.coloring == Coloring::weights ? 2 : 1;
}

void draw_gutters(const Frame& frame, const Heatmap& map, const HeatmapLayout& d) {
  const std::vector<RowStatistics>& facts =
      frame.work.statistics.rows(frame.displayed.trace, frame.displayed.version, map.stage, map.head);
  double largest = 0;
  for (const RowStatistics& row : facts) largest = std::max(largest, std::abs(row.sum));
  const std::array<Gutter, 2> gutters{
      Gutter{"sum", "The sum of the row's finite numbers", &RowStatistics::sum, largest},
      Gutter{"bits", "The entropy of the row in bits: 0 when one key has all of the weight",
             &RowStatistics::entropy_bits,
             std::log2(static_cast<double>(std::max<std::size_t>(2, d.numbers.n_cols)))}};
  for (int k = 0; k < gutter_count(map.stage); ++k) {
    const Gutter& gutter = gutters.at(static_cast<std::size_t>(k));
    const float left = d.far.x + frame.metrics.px(6) + map.gutter_width * static_cast<float>(k);
    const float right = left + map.gutter_width - frame.metrics.px(6);
    draw_text(frame.fonts.mono12, {right, d.corner.y - frame.metrics.px(9)}, Align::right_middle,
              frame.palette.faint, gutter.title);
    if (d.cell_height < frame.metrics.px(min_line_height))
      draw_rect({left, d.corner.y}, {right, d.far.y}, frame.palette.background.panel);
    for (std::size_t i = 0; i < facts.size(); ++i)
      if (d.shows_row(i)) draw_row_statistic(frame, d, gutter, facts[i].*gutter.figure, left, right, i);
    frame.landmarks.mark(map.place + "/gutter/" + gutter.title, {left, d.corner.y}, {right, d.far.y});
    if (facts.empty()) continue;  // still being computed
    if (!hovers({left, d.corner.y - frame.metrics.px(18)}, {right, d.far.y})) continue;
    const double place =
        d.part.top + static_cast<double>((ImGui::GetIO().MousePos.y - d.corner.y) / d.cell_height);
    const auto row = static_cast<std::size_t>(std::clamp(place, 0.0, static_cast<double>(facts.size() - 1)));
    const std::string words =
        fmt::format("{}\nrow {}: {}", gutter.about, row, inspector_text(facts[row].*gutter.figure));
    ImGui::SetTooltip("%s", words.c_str());
  }
}

namespace {

/// Returns the factor of line widths: a presentation must be legible from the last row.
float line_width_factor(const Frame& frame) {
  return frame.displayed.selection.presentation.on ? 2.0f : 1.0f;
}

/// Draws a frame around a rectangle of cells, at least a few pixels in size.
void outline_cells(const HeatmapLayout& d, const core::explain::SourceRect& cells, ImU32 color,
                   float thickness) {
  const ImVec2 a = d.cell_min(cells.row0, cells.column0), b = d.cell_max(cells.row1 - 1, cells.column1 - 1);
  const float least = 2 * thickness + 1;
  outline({a.x - 1, a.y - 1}, {std::max(b.x, a.x + least), std::max(b.y, a.y + least)}, color, thickness);
}

/// Outlines the operands of the pinned cell, and more faintly the cells computed from it.
void outline_operands(const Frame& frame, const Heatmap& map, const HeatmapLayout& d) {
  if (!frame.displayed.selection.pinned) return;
  const auto is_here = [&](const core::explain::SourceRect& cells) {
    return cells.source == core::explain::Source(map.stage) && shows_head(frame, map, cells.head);
  };
  const ImU32 quiet = packed(mix(frame.palette.operand, frame.palette.background.back, 0.5f));
  for (const auto& cells : core::explain::results(frame.displayed, *frame.displayed.selection.pinned))
    if (is_here(cells)) outline_cells(d, cells, quiet, 2 * line_width_factor(frame));
  for (const CellRef& worked :
       core::explain::derived_cells(frame.displayed, *frame.displayed.selection.pinned))
    for (const auto& cells : core::explain::operands(frame.displayed, worked))
      if (is_here(cells))
        outline_cells(d, cells, packed(frame.palette.operand), 2 * line_width_factor(frame));
}

void draw_cross(const Frame& frame, const HeatmapLayout& d) {
  if (!d.cross) return;
  const ImU32 line = packed(frame.palette.selection, 0.65f);
  const float thick = line_width_factor(frame);
  outline(d.cell_min(d.cross->row, 0), d.cell_max(d.cross->row, d.numbers.n_cols - 1), line, thick);
  if (!d.row_only)
    outline(d.cell_min(0, d.cross->column), d.cell_max(d.numbers.n_rows - 1, d.cross->column), line, thick);
}

void draw_chosen(const Frame& frame, const Heatmap& map, const HeatmapLayout& d) {
  const auto& p = frame.palette;
  const auto is_here = [&](const std::optional<CellRef>& cell) {
    return cell && has_cells_of_stage(map) && cell->stage == map.stage && shows_head(frame, map, cell->head);
  };
  if (is_here(frame.displayed.selection.pinned)) {
    const ImVec2 a =
        d.cell_min(frame.displayed.selection.pinned->row, frame.displayed.selection.pinned->column);
    const ImVec2 b =
        d.cell_max(frame.displayed.selection.pinned->row, frame.displayed.selection.pinned->column);
    const float out = 2 * line_width_factor(frame);
    outline({a.x - out, a.y - out}, {std::max(b.x + out - 1, a.x + 4), std::max(b.y + out - 1, a.y + 4)},
            p.selection, out);
    if (b.x - a.x > 6 && b.y - a.y > 6)
      outline(a, {b.x - 1, b.y - 1}, p.selection_inner, line_width_factor(frame));
  }
  if (is_here(frame.displayed.selection.hovered)) {
    const ImVec2 a =
        d.cell_min(frame.displayed.selection.hovered->row, frame.displayed.selection.hovered->column);
    const ImVec2 b =
        d.cell_max(frame.displayed.selection.hovered->row, frame.displayed.selection.hovered->column);
    outline({a.x - 1, a.y - 1}, {std::max(b.x, a.x + 2), std::max(b.y, a.y + 2)}, p.selection, 1);
  }
}

/// Outlines the number whose gradient is shown.
void mark_target(const Frame& frame, const Heatmap& map, const HeatmapLayout& d) {
  const auto& of = frame.displayed.look.gradient.of;
  if (!map.of_gradient || of->stage != map.stage || !of->is_cell() || !shows_head(frame, map, of->head))
    return;
  const ImVec2 a = d.cell_min(*of->row, *of->column), b = d.cell_max(*of->row, *of->column);
  outline({a.x - 1, a.y - 1}, b, frame.palette.text, 2 * line_width_factor(frame));
}

/// Marks mask cells that were switched by hand.
void mark_mask_edits(const Frame& frame, const Heatmap& map, const HeatmapLayout& d) {
  if (map.other || d.stage.columns != Columns::tokens || map.stage < Stage::mask ||
      !frame.displayed.has(Stage::mask))
    return;
  const float side = std::min(frame.metrics.px(6), d.cell_height / 3);
  for (const auto& cell : frame.displayed.model.mask.cells) {
    const ImVec2 a = d.cell_min(cell.row, cell.column);
    draw_rect({a.x + 2, a.y + 2}, {a.x + 2 + side, a.y + 2 + side}, frame.palette.accent);
  }
}

/// Draws a colored corner on every overridden cell.
void mark_overridden_cells(const Frame& frame, const Heatmap& map, const HeatmapLayout& d) {
  if (map.other) return;
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (const auto& [place, value] : frame.displayed.model.given.cells) {
    const bool here = place.stage == map.stage && place.sequence == frame.displayed.look.sequence &&
                      place.head == matrix_of_head(frame.displayed.model, map.stage, map.head);
    if (!here) continue;
    const ImVec2 a = d.cell_min(place.row, place.column), b = d.cell_max(place.row, place.column);
    const float side = std::max(3.0f, std::min(frame.metrics.px(8), (b.y - a.y) * 0.45f));
    list->AddTriangleFilled({b.x - side, a.y}, {b.x, a.y}, {b.x, a.y + side},
                            packed(frame.palette.selection));
    list->AddTriangle({b.x - side, a.y}, {b.x, a.y}, {b.x, a.y + side}, packed(frame.palette.background.back),
                      1);
  }
}

}  // namespace

void draw_marks(const Frame& frame, const Heatmap& map, const HeatmapLayout& d) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->PushClipRect({d.corner.x - 5, d.corner.y - 5}, {d.far.x + 5, d.far.y + 5}, true);
  draw_changes(frame, map, d);
  draw_cross(frame, d);
  if (!map.other || !map.other->shows_stage) outline_operands(frame, map, d);
  mark_target(frame, map, d);
  draw_chosen(frame, map, d);
  mark_mask_edits(frame, map, d);
  mark_overridden_cells(frame, map, d);
  list->PopClipRect();
}

namespace {

using core::text::NumberExtents;

constexpr float min_cell_height = 15;      // of a cell with a number, at scale 1
constexpr float line_height_ratio = 1.2f;  // of a cell, in heights of its font
constexpr float large_height_ratio = 2;    // the same, for the fonts of large cells
constexpr std::size_t max_measured_cells =
    4096;  // up to here all numbers count, not only those on the screen

/// Returns the color behind a number, after dimming.
Rgb cell_background(const Frame& frame, const HeatmapLayout& d, const ColorScale& scale, std::size_t i,
                    std::size_t j) {
  const double v = d.numbers(i, j);
  const Rgb color = std::isfinite(v) ? scale.color(v) : frame.palette.hatch.background;
  const bool off = d.cross && d.cross->row != i && (d.row_only || d.cross->column != j);
  return off ? mix(color, frame.palette.background.back, frame.palette.dark ? 0.54f : 0.45f) : color;
}

/// Returns how many characters fit in a cell with a digit's width between neighbors.
int characters_in(float cell, ImFont* font) {
  return static_cast<int>((cell + 0.01f) / text_width(font, "0")) - 1;
}

ImFont* font_of(const Frame& frame, const DigitLevel& level) {
  return level.small ? frame.fonts.mono11 : frame.fonts.mono12;
}

DigitNeeds needs_of(const Frame& frame, const core::text::NumberExtents& extents, const ValueRange& range,
                    core::attention::Coloring coloring) {
  constexpr double rounds_to_one = 0.995;
  const double largest = std::max(-range.smallest, range.largest) / extents.unit;
  return {frame.settings.pytorch_numbers ? extents.in_pytorch_style() : extents,
          !frame.settings.pytorch_numbers && largest < rounds_to_one,
          coloring == core::attention::Coloring::weights};
}

/// Returns the unit in which the numbers of a range are written: 1, or a power of ten below it. Gradients
/// have it sooner: they are small, and two decimals would leave one digit.
double unit_for(const Frame& frame, const ValueRange& range, bool of_gradient) {
  if (frame.settings.pytorch_numbers) return 1;
  constexpr double gradients_below = 0.1, values_below = 0.01;
  return core::text::unit_for(std::max(-range.smallest, range.largest),
                              of_gradient ? gradients_below : values_below);
}

DigitNeeds needs_in(const Frame& frame, const Heatmap& map, const HeatmapLayout& d) {
  const bool few = d.numbers.n_rows * d.numbers.n_cols <= max_measured_cells;
  const CellRange all{0, d.numbers.n_rows, 0, d.numbers.n_cols};
  const auto extents =
      core::text::measure_numbers(d.numbers, few ? all : cells_on_screen(d), unit_in(frame, map));
  DigitNeeds needs = needs_of(frame, extents, displayed_value_range(frame, map), coloring_of(map));
  needs.has_bare = needs.has_bare && !map.keeps_zero;
  return needs;
}

}  // namespace

float text_scale(const Frame& frame) {
  return platform::font_size(frame.fonts.mono13) / std::max(1.0f, std::round(13 * frame.metrics.scale));
}

float scaled_with_text(const Frame& frame, float length) {
  return std::round(frame.metrics.px(length) * text_scale(frame));
}

int cells_length(float room, std::size_t n, float largest, float least) {
  const auto count = static_cast<float>(n);
  const float pitch = std::min(room / count, largest);
  return static_cast<int>(std::max(1.0f, pitch < least ? pitch * count : std::floor(pitch) * count));
}

float cell_width_for(const Frame& frame, const DigitNeeds& needs, const DigitLevel& level) {
  const int characters = needs.extents.characters(level.decimals) - (needs.is_bare(level) ? 1 : 0);
  const float text = static_cast<float>(characters) * text_width(font_of(frame, level), "0");
  return std::ceil(text + scaled_with_text(frame, 4) - 0.01f);
}

DigitNeeds digit_needs(const Frame& frame, Stage stage, std::size_t head, bool of_gradient) {
  // While a number is dragged cells keep their width.
  const bool is_dragged = frame.work.changes && frame.work.changes->is_under_way();
  const auto* other = of_gradient  ? &frame.gradient->gradients()->stages.at(stage, head)
                      : is_dragged ? previous_numbers(frame, stage, head)
                                   : nullptr;
  const auto& numbers = other ? *other : frame.displayed.trace.at(stage, head);
  const ValueRange range = other ? value_range(*other) : stage_value_range(frame, stage, head);
  const double unit = unit_for(frame, range, of_gradient);
  const bool few = numbers.n_rows() * numbers.n_cols() <= max_measured_cells;
  const auto extents =
      few ? core::text::measure_numbers(numbers, {0, numbers.n_rows(), 0, numbers.n_cols()}, unit)
          : core::text::measure_numbers(arma::mat{range.smallest, range.largest}, {0, 1, 0, 2}, unit);
  return needs_of(frame, extents, range,
                  of_gradient ? Coloring::signed_values : core::attention::info(stage).coloring);
}

double unit_in(const Frame& frame, const Heatmap& map) {
  return unit_for(frame, displayed_value_range(frame, map), map.of_gradient);
}

NumberStyle number_style(const Frame& frame, const Heatmap& map, const HeatmapLayout& d) {
  const Metrics& m = frame.metrics;
  const Fonts& f = frame.fonts;
  // Most cells are too small for any number, so their numbers need not be read.
  if (!map.show_numbers || d.cell_height < m.px(min_cell_height) ||
      d.cell_height < line_height_ratio * platform::font_size(f.mono12) ||
      characters_in(d.cell_width, f.mono11) < 1)
    return {};
  const DigitNeeds needs = needs_in(frame, map, d);
  const auto first = std::min(map.digits, digit_levels.size());
  const auto* const level = std::find_if(
      digit_levels.begin() + first, digit_levels.end(),
      [&](const DigitLevel& tried) { return cell_width_for(frame, needs, tried) <= d.cell_width + 0.01f; });
  if (level == digit_levels.end()) return {};
  const auto& extents = needs.extents;
  NumberStyle style{font_of(frame, *level),
                    {std::min(level->decimals, extents.decimals), extents.unit, true, extents.as_pytorch},
                    needs.is_bare(*level)};
  if (level->small) return style;
  // The largest font that costs no decimals.
  const auto fits = [&](ImFont* font, float room) {
    return d.cell_height >= room * platform::font_size(font) &&
           characters_in(d.cell_width, font) >= extents.characters(style.format.decimals);
  };
  for (ImFont* font : {f.mono32, f.mono24, f.mono18, f.mono14})
    if (fits(font, large_height_ratio)) return {font, style.format, style.is_bare};
  if (!m.compact && fits(f.mono13, line_height_ratio)) style.font = f.mono13;
  return style;
}

void draw_masked(const Frame& frame, const Heatmap& map, const HeatmapLayout& d, const ColorScale& scale) {
  if (!marks_masked(map) || std::min(d.cell_width, d.cell_height) < frame.metrics.px(12)) return;
  const CellRange shown = cells_on_screen(d);
  const ImU32 ink = packed(readable_on(scale.color(0)), 0.2f);
  const float arm = frame.metrics.px(3);
  for (std::size_t i = shown.row0; i < shown.row1; ++i)
    for (std::size_t j = shown.column0; j < shown.column1; ++j) {
      if (!is_masked(frame, map, i, j)) continue;
      const ImVec2 a = d.cell_min(i, j), b = d.cell_max(i, j);
      const ImVec2 m{std::floor((a.x + b.x) / 2), d.middle_of_row(i)};
      draw_cross(m, arm, ink, 1);
    }
}

void draw_numbers(const Frame& frame, const Heatmap& map, const HeatmapLayout& d, const ColorScale& scale) {
  const auto [font, format, is_bare] = number_style(frame, map, d);
  if (!font) return;
  const CellRange shown = cells_on_screen(d);
  const bool plain_one = d.stage.coloring != Coloring::signed_values && coloring_of(map) == d.stage.coloring;
  for (std::size_t i = shown.row0; i < shown.row1; ++i)
    for (std::size_t j = shown.column0; j < shown.column1; ++j) {
      const double v = d.numbers(i, j);
      if (is_masked(frame, map, i, j) || (v == 0 && is_dropped(frame, map, i, j))) continue;  // has a mark
      Rgb ink = readable_on(cell_background(frame, d, scale, i, j));
      if (std::isnan(v)) ink = frame.palette.status.bad;
      if (std::isinf(v) || (map.of_gradient && v == 0)) ink = frame.palette.faint;
      const ImVec2 a = d.cell_min(i, j), b = d.cell_max(i, j);
      const ImVec2 middle{std::floor((a.x + b.x - 1) / 2), d.middle_of_row(i)};
      std::string text = cell_text(v, format, plain_one);
      if (const auto zero = text.find("0."); is_bare && zero != text.npos) text.erase(zero, 1);
      const float half_width = text_width(font, text) / 2, half_height = platform::font_size(font) / 2;
      // A cut number would read as another number.
      if (middle.x - half_width < d.corner.x || middle.x + half_width > d.far.x ||
          middle.y - half_height < d.corner.y - 2 || middle.y + half_height > d.far.y + 2)
        continue;
      if (std::isnan(v)) {  // the text replaces the cross
        draw_rect({middle.x - half_width - 2, middle.y - 7}, {middle.x + half_width + 2, middle.y + 7},
                  frame.palette.hatch.background);
      }
      draw_text(font, middle, Align::middle, ink, text);
    }
}

}  // namespace app::widgets
