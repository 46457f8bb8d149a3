#include "app/widgets/heatmap_view.hpp"

#include <algorithm>
#include <cmath>

#include "app/pinning.hpp"
#include "app/widgets/cell_words.hpp"
#include "app/widgets/colour_bar.hpp"
#include "app/widgets/drawing.hpp"
#include "app/widgets/number_text.hpp"
#include "core/explain/explain.hpp"

namespace app::widgets {
namespace {

using core::attention::Colouring;
using core::attention::Columns;
using core::attention::StageInfo;

constexpr float smallest_number_cell_width = 26, smallest_number_cell_height = 15;

/// What draw_heatmap() needs to know about one map again and again.
struct Drawn {
  const StageInfo& stage;
  const arma::mat& numbers;
  ImVec2 corner;  // of the picture on the screen
  float cell_width, cell_height;
  std::optional<render::Cross> cross;  // the pinned row and column, as far as they mean something here
  bool row_only = false;               // the cross has no column here

  ImVec2 cell_min(std::size_t row, std::size_t column) const {
    return {std::round(corner.x + column * cell_width), std::round(corner.y + row * cell_height)};
  }
  ImVec2 cell_max(std::size_t row, std::size_t column) const {
    return {std::round(corner.x + (column + 1) * cell_width), std::round(corner.y + (row + 1) * cell_height)};
  }
};

render::ColourMap map_of(Colouring colouring) {
  switch (colouring) {
    case Colouring::weights:
      return render::ColourMap::weights;
    case Colouring::mask:
      return render::ColourMap::mask;
    case Colouring::signed_values:
      break;
  }
  return render::ColourMap::values;
}

bool is_weight(Stage stage) {
  return stage == Stage::weights || stage == Stage::dropped_weights || stage == Stage::zeroed_weights;
}

/// Whether cells that the mask hides are marked here.
bool marks_hidden(const Heatmap& map) {
  return map.other ? map.other->of_tokens || map.other->visible : is_weight(map.stage);
}

const arma::mat& visible_cells(const Frame& frame, const Heatmap& map) {
  return map.other && map.other->visible ? *map.other->visible : *frame.trace.mask;
}

/// Which cells dropout kept, where that is to be marked.
const arma::mat* kept_cells(const Frame& frame, const Heatmap& map) {
  if (map.other) return map.other->kept;
  const bool marked = map.stage == Stage::dropout_mask || map.stage == Stage::dropped_weights;
  return marked ? &*frame.trace.heads[map.head].dropout_mask : nullptr;
}

/// Whether the cells are those of a stage, its own or another state's.
bool has_cells_of_stage(const Heatmap& map) {
  return !map.other || map.other->of_stage;
}

/// The pinned cell as a cross on another stage: token rows and columns carry over, features do not.
void link_selection(const Frame& frame, const Heatmap& map, Drawn& d) {
  const std::optional<CellRef>& pinned = frame.view.pinned;
  if (!pinned || (!has_cells_of_stage(map) && !map.other->of_tokens)) return;
  const StageInfo& from = core::attention::info(pinned->stage);
  const bool here = pinned->stage == map.stage && (!d.stage.per_head || pinned->head == map.head);
  const bool both_tokens = from.columns == Columns::tokens && d.stage.columns == Columns::tokens;
  if (here || both_tokens) {
    d.cross = render::Cross{pinned->row, pinned->column};
  } else {
    d.cross = render::Cross{pinned->row, d.numbers.n_cols};  // no such column: the row alone stays bright
    d.row_only = true;
  }
}

void draw_row_labels(const Frame& frame, const Heatmap& map, const Drawn& d) {
  const auto& tokens =
      map.other && map.other->rows ? *map.other->rows : frame.model.sequences[frame.view.sequence].tokens;
  const float index_right = d.corner.x - frame.metrics.px(6);
  const std::size_t step = label_step(d.cell_height, frame.metrics.px(14));
  const float digits = text_width(frame.fonts.mono12, std::to_string(tokens.size() - 1));
  for (std::size_t i = 0; i < d.numbers.n_rows; ++i) {
    const bool chosen = d.cross && d.cross->row == i;
    if (i % step != 0 && !chosen) continue;
    if (!chosen && d.cross && step > 1 && (i > d.cross->row ? i - d.cross->row : d.cross->row - i) < step)
      continue;
    const float middle = d.corner.y + (i + 0.5f) * d.cell_height;
    draw_text(frame.fonts.mono12, {index_right, middle}, Align::right_middle,
              packed(chosen ? frame.palette.text : frame.palette.faint), std::to_string(i));
    if (!map.row_tokens) continue;
    const float right = index_right - digits - frame.metrics.px(5);
    const float room = right - (d.corner.x - map.label_width);
    draw_text(frame.fonts.sans13, {right, middle}, Align::right_middle,
              packed(chosen ? frame.palette.text : frame.palette.dim),
              shortened(frame.fonts.sans13, tokens[i], room));
  }
}

/// Words above the columns in place of indices.
void draw_column_names(const Frame& frame, const Heatmap& map, const Drawn& d) {
  const std::size_t step = label_step(d.cell_width, frame.metrics.px(34));
  for (std::size_t j = 0; j < d.numbers.n_cols; j += step) {
    const float middle = d.corner.x + (j + 0.5f) * d.cell_width;
    draw_text(
        frame.fonts.sans12, {middle, d.corner.y - frame.metrics.px(9)}, Align::middle,
        packed(frame.palette.dim),
        shortened(frame.fonts.sans12, (*map.other->columns)[j], d.cell_width * step - frame.metrics.px(2)));
  }
}

void draw_column_labels(const Frame& frame, const Heatmap& map, const Drawn& d) {
  if (map.other && map.other->columns) return draw_column_names(frame, map, d);
  const bool own_tokens = map.other && map.other->of_stage && map.other->rows;
  const auto& tokens = own_tokens ? *map.other->rows : frame.model.sequences[frame.view.sequence].tokens;
  const bool named = map.column_tokens && d.stage.columns == Columns::tokens;
  const float widest = text_width(frame.fonts.mono12, std::to_string(d.numbers.n_cols));
  const std::size_t step =
      label_step(d.cell_width, named ? frame.metrics.px(34) : widest + frame.metrics.px(6));
  const float index_middle = d.corner.y - frame.metrics.px(9);
  for (std::size_t j = 0; j < d.numbers.n_cols; ++j) {
    const bool chosen = d.cross && !d.row_only && d.cross->column == j;
    if (j % step != 0 && !chosen) continue;
    if (!chosen && d.cross && !d.row_only && step > 1 &&
        (j > d.cross->column ? j - d.cross->column : d.cross->column - j) < step)
      continue;
    const float middle = d.corner.x + (j + 0.5f) * d.cell_width;
    draw_text(frame.fonts.mono12, {middle, index_middle}, Align::middle,
              packed(chosen ? frame.palette.text : frame.palette.faint), std::to_string(j));
    if (!named) continue;
    const float pitch = d.cell_width * static_cast<float>(step);
    const auto width = [&](std::size_t k) {
      return k < tokens.size() ? text_width(frame.fonts.sans12, tokens[k]) : 0;
    };
    const float beside = std::max(j >= step ? width(j - step) : 0, width(j + step));
    const bool touches = (width(j) + std::min(beside, pitch)) / 2 + frame.metrics.px(4) > pitch;
    const float room = touches ? pitch - frame.metrics.px(2) : width(j);
    draw_text(frame.fonts.sans12, {middle, index_middle - frame.metrics.px(15)}, Align::middle,
              packed(chosen ? frame.palette.text : frame.palette.dim),
              shortened(frame.fonts.sans12, tokens[j], room));
  }
}

/// The colour that really lies under a number, after dimming.
Rgb ground_of(const Frame& frame, const Heatmap& map, const Drawn& d, Ends ends, std::size_t i,
              std::size_t j) {
  const double v = d.numbers(i, j);
  Rgb colour = std::isfinite(v)
                   ? render::colour_at(map_of(colouring_of(map)), frame.palette.dark,
                                       ends.high > ends.low ? (v - ends.low) / (ends.high - ends.low) : 0.5)
                   : frame.palette.hatch_ground;
  const bool off = d.cross && d.cross->row != i && (d.row_only || d.cross->column != j);
  return off ? mix(colour, frame.palette.background, frame.palette.dark ? 0.54f : 0.45f) : colour;
}

/// Few characters may come close to the edge; more decimals are only worth a clear distance.
int characters_that_fit(float cell, float character) {
  const int close = static_cast<int>((cell - 2) / character),
            clear = static_cast<int>((cell - 6) / character);
  return std::max(std::min(close, 5), clear);
}

void draw_numbers(const Frame& frame, const Heatmap& map, const Drawn& d, Ends ends, CellRange shown) {
  if (!map.show_numbers) return;
  if (d.cell_width < frame.metrics.px(smallest_number_cell_width) ||
      d.cell_height < frame.metrics.px(smallest_number_cell_height))
    return;
  ImFont* font = frame.metrics.compact ? frame.fonts.mono12 : frame.fonts.mono13;
  const int characters = characters_that_fit(d.cell_width, text_width(font, "0"));
  const NumberFormat format = choose_format(d.numbers, shown, characters);
  const arma::mat* kept = kept_cells(frame, map);
  for (std::size_t i = shown.row0; i < shown.row1; ++i)
    for (std::size_t j = shown.column0; j < shown.column1; ++j) {
      const double v = d.numbers(i, j);
      const bool dropped = kept && v == 0 && (*kept)(i, j) == 0;
      if (dropped || (!format.fits && std::isfinite(v) && v != 0)) continue;
      const Rgb ground = ground_of(frame, map, d, ends, i, j);
      const bool hidden = marks_hidden(map) && visible_cells(frame, map)(i, j) == 0;
      Rgb ink = readable_on(ground);
      if (std::isnan(v)) ink = frame.palette.bad;
      if (std::isinf(v) || hidden) ink = frame.palette.faint;
      const ImVec2 a = d.cell_min(i, j), b = d.cell_max(i, j);
      const ImVec2 middle{std::floor((a.x + b.x - 1) / 2), std::floor((a.y + b.y - 1) / 2)};
      const std::string text = cell_text(
          v, format, d.stage.colouring != Colouring::signed_values && colouring_of(map) == d.stage.colouring);
      if (std::isnan(v)) {  // the cross gives way to the word
        const float half = text_width(font, text) / 2 + 2;
        ImGui::GetWindowDrawList()->AddRectFilled({middle.x - half, middle.y - 7},
                                                  {middle.x + half, middle.y + 7},
                                                  packed(frame.palette.hatch_ground));
      }
      draw_text(font, middle, Align::middle, packed(ink), text);
    }
}

/// A frame around a rectangle of cells, around at least a few pixels when cells are smaller.
void outline_cells(const Drawn& d, const core::explain::Cells& cells, ImU32 colour, float thickness) {
  const ImVec2 a = d.cell_min(cells.row0, cells.column0), b = d.cell_max(cells.row1 - 1, cells.column1 - 1);
  const float least = 2 * thickness + 1;
  outline(ImGui::GetWindowDrawList(), {a.x - 1, a.y - 1},
          {std::max(b.x, a.x + least), std::max(b.y, a.y + least)}, colour, thickness);
}

/// What the pinned cell was worked out from, and more quietly what it goes into.
void draw_links(const Frame& frame, const Heatmap& map, const Drawn& d) {
  if (!frame.view.pinned) return;
  const auto is_here = [&](const core::explain::Cells& cells) {
    return cells.source == core::explain::Source(map.stage) && (!d.stage.per_head || cells.head == map.head);
  };
  const ImU32 quiet = packed(mix(frame.palette.operand, frame.palette.background, 0.5f));
  for (const auto& cells : core::explain::results(frame.model, frame.trace, *frame.view.pinned))
    if (is_here(cells)) outline_cells(d, cells, quiet, 2);
  for (const CellRef& worked : core::explain::worked_out(frame.model, frame.trace, *frame.view.pinned))
    for (const auto& cells : core::explain::operands(frame.model, frame.trace, worked))
      if (is_here(cells)) outline_cells(d, cells, packed(frame.palette.operand), 2);
}

void draw_selection(const Frame& frame, const Heatmap& map, const Drawn& d) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const auto& p = frame.palette;
  const std::size_t rows = d.numbers.n_rows, columns = d.numbers.n_cols;
  if (d.cross) {
    const ImU32 line = packed(p.selection, 0.65f);
    outline(list, d.cell_min(d.cross->row, 0), d.cell_max(d.cross->row, columns - 1), line, 1);
    if (!d.row_only)
      outline(list, d.cell_min(0, d.cross->column), d.cell_max(rows - 1, d.cross->column), line, 1);
  }
  if (!map.other || !map.other->of_stage) draw_links(frame, map, d);
  const auto is_here = [&](const std::optional<CellRef>& cell) {
    return cell && has_cells_of_stage(map) && cell->stage == map.stage &&
           (!d.stage.per_head || cell->head == map.head);
  };
  if (is_here(frame.view.pinned)) {
    const ImVec2 a = d.cell_min(frame.view.pinned->row, frame.view.pinned->column);
    const ImVec2 b = d.cell_max(frame.view.pinned->row, frame.view.pinned->column);
    outline(list, {a.x - 2, a.y - 2}, {b.x + 1, b.y + 1}, packed(p.selection), 2);
    if (b.x - a.x > 6 && b.y - a.y > 6) outline(list, a, {b.x - 1, b.y - 1}, packed(p.selection_inner), 1);
  }
  if (is_here(frame.view.hovered)) {
    const ImVec2 a = d.cell_min(frame.view.hovered->row, frame.view.hovered->column);
    const ImVec2 b = d.cell_max(frame.view.hovered->row, frame.view.hovered->column);
    outline(list, {a.x - 1, a.y - 1}, b, packed(p.selection), 1);
  }
  if (map.other || d.stage.columns != Columns::tokens || map.stage == Stage::scores ||
      map.stage == Stage::scaled_scores)
    return;
  for (const auto& cell : frame.model.mask.cells) {
    const ImVec2 a = d.cell_min(cell.row, cell.column);
    const float side = std::min(frame.metrics.px(6), d.cell_height / 3);
    list->AddRectFilled({a.x + 2, a.y + 2}, {a.x + 2 + side, a.y + 2 + side}, packed(p.accent));
  }
}

void handle_mouse(const Frame& frame, const Heatmap& map, const Drawn& d) {
  ImGui::SetCursorScreenPos(d.corner);
  ImGui::InvisibleButton(map.place.c_str(), {std::max(1.0f, static_cast<float>(map.width)),
                                             std::max(1.0f, static_cast<float>(map.height))});
  frame.landmarks.mark_item(map.place);
  if (!ImGui::IsItemHovered()) return;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const auto index = [](float position, float pitch, std::size_t count) {
    return static_cast<std::size_t>(
        std::clamp(std::floor(position / pitch), 0.0f, static_cast<float>(count - 1)));
  };
  const CellRef cell{map.stage, d.stage.per_head ? map.head : 0,
                     index(mouse.y - d.corner.y, d.cell_height, d.numbers.n_rows),
                     index(mouse.x - d.corner.x, d.cell_width, d.numbers.n_cols)};
  if (!has_cells_of_stage(map)) {
    const std::string place = std::to_string(cell.row) + ", " + std::to_string(cell.column);
    ImGui::SetTooltip("%s: %s", place.c_str(), in_full(d.numbers(cell.row, cell.column)).c_str());
    return;
  }
  frame.commands.look([cell](View& v) { v.hovered = cell; });
  if (!map.other) draw_cell_tooltip(frame, cell);
  if (!ImGui::IsMouseClicked(0)) return;
  frame.commands.look([cell](View& v) { pin(v, cell); });
}

CellRange shown_cells(const Drawn& d) {
  const ImVec2 low = ImGui::GetWindowDrawList()->GetClipRectMin(),
               high = ImGui::GetWindowDrawList()->GetClipRectMax();
  const auto index = [](float position, float pitch, std::size_t count) {
    return static_cast<std::size_t>(
        std::clamp(std::floor(position / pitch), 0.0f, static_cast<float>(count)));
  };
  return {index(low.y - d.corner.y, d.cell_height, d.numbers.n_rows),
          index(high.y - d.corner.y + d.cell_height, d.cell_height, d.numbers.n_rows),
          index(low.x - d.corner.x, d.cell_width, d.numbers.n_cols),
          index(high.x - d.corner.x + d.cell_width, d.cell_width, d.numbers.n_cols)};
}

}  // namespace

float column_label_height(const Frame& frame, const Heatmap& map) {
  const bool named = map.column_tokens && core::attention::info(map.stage).columns == Columns::tokens;
  return frame.metrics.px(named && !(map.other && map.other->columns) ? 32 : 18);
}

float bar_room(const Frame& frame, const Heatmap& map) {
  if (!map.show_bar) return 0;
  return map.bar_beside ? frame.metrics.px(8 + 6 + 6) + text_width(frame.fonts.mono12, "−0.00")
                        : frame.metrics.px(26);
}

core::attention::Colouring colouring_of(const Heatmap& map) {
  return map.other && map.other->colouring ? *map.other->colouring
                                           : core::attention::info(map.stage).colouring;
}

Ends colour_ends(const Frame& frame, Stage stage, std::size_t head) {
  const StageInfo& row = core::attention::info(stage);
  if (row.colouring != Colouring::signed_values)
    return {0, core::attention::top_of_range(frame.model, stage)};
  const bool one_range = row.per_head && frame.view.range == RangeRule::all_heads;
  double largest = 0;
  for (std::size_t h = one_range ? 0 : head; h < (one_range ? frame.trace.heads.size() : head + 1); ++h) {
    const Extent& e = frame.extents.of(frame.trace, frame.version, stage, h);
    largest = std::max({largest, -e.smallest, e.largest});
  }
  return {-largest, largest};
}

const arma::mat& shown_numbers(const Frame& frame, const Heatmap& map) {
  return map.other ? *map.other->numbers : core::attention::info(map.stage).matrix(frame.trace, map.head);
}

void draw_heatmap(const Frame& frame, const Heatmap& map, ImVec2 top_left) {
  const StageInfo& stage = core::attention::info(map.stage);
  const arma::mat& numbers = shown_numbers(frame, map);
  Drawn d{
      stage,
      numbers,
      {std::round(top_left.x + map.label_width), std::round(top_left.y + column_label_height(frame, map))},
      static_cast<float>(map.width) / numbers.n_cols,
      static_cast<float>(map.height) / numbers.n_rows,
      {}};
  link_selection(frame, map, d);
  const ImVec2 far{d.corner.x + map.width, d.corner.y + map.height};
  if (ImGui::IsRectVisible(top_left, {far.x, far.y + frame.metrics.px(30)})) {
    const Ends ends = map.other ? map.other->ends : colour_ends(frame, map.stage, map.head);
    render::Picture picture;
    picture.place = map.place;
    picture.numbers = &numbers;
    if (marks_hidden(map)) picture.visible = &visible_cells(frame, map);
    picture.kept = kept_cells(frame, map);
    picture.version = map.other ? map.other->version : frame.version;
    picture.map = map_of(colouring_of(map));
    picture.dark = frame.palette.dark;
    picture.low = ends.low, picture.high = ends.high;
    picture.width = map.width, picture.height = map.height;
    picture.right = numbers.n_cols, picture.bottom = numbers.n_rows;
    picture.cross = d.cross;
    picture.phase = static_cast<int>(d.corner.x + d.corner.y) % 6;
    ImGui::GetWindowDrawList()->AddImage(frame.painter.paint(picture), d.corner, far);
    draw_row_labels(frame, map, d);
    draw_column_labels(frame, map, d);
    draw_numbers(frame, map, d, ends, shown_cells(d));
    draw_selection(frame, map, d);
    if (map.show_bar) draw_bar(frame, map, ends, d.corner, far);
  }
  handle_mouse(frame, map, d);
}

}  // namespace app::widgets
