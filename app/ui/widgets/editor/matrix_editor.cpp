#include "app/ui/widgets/editor/matrix_editor.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <utility>

#include "app/screen/painter.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/files/table.hpp"

namespace app::widgets {

namespace {

using namespace core::editing;
using platform::key_pressed;

/// Name of the field in which a cell's number is typed.
inline constexpr const char* cell_field = "edit/typing";

MatrixGrid::GridRange visible(float from, float to, float pitch, std::size_t n) {
  const auto index = [n](float cells) {
    return static_cast<std::size_t>(std::clamp(cells, 0.0f, static_cast<float>(n)));
  };
  return {index(std::floor(from / pitch)), index(std::ceil(to / pitch))};
}

/// Returns how far an interval extends beyond a window: negative before it, positive after it.
float overflow(float from, float to, float window_from, float window_to) {
  if (from < window_from || to - from > window_to - window_from) return from - window_from;
  return std::max(0.0f, to - window_to);
}

bool is_inside(ImVec2 pos, ImVec2 min, ImVec2 max) {
  return pos.x >= min.x && pos.x < max.x && pos.y >= min.y && pos.y < max.y;
}

}  // namespace

ImVec2 MatrixGrid::size() const {
  return {label_width + pitch.x * static_cast<float>(n_columns),
          header_height + pitch.y * static_cast<float>(n_rows)};
}

ImVec2 MatrixGrid::cell_min(std::size_t row, std::size_t column) const {
  return {origin.x + label_width + pitch.x * static_cast<float>(column),
          origin.y + header_height + pitch.y * static_cast<float>(row)};
}

MatrixGrid::GridRange MatrixGrid::visible_rows() const {
  const float first = origin.y + header_height;
  return visible(view_min.y + header_height - first, view_max.y - first, pitch.y, n_rows);
}

MatrixGrid::GridRange MatrixGrid::visible_columns() const {
  const float first = origin.x + label_width;
  return visible(view_min.x + label_width - first, view_max.x - first, pitch.x, n_columns);
}

std::optional<MatrixGrid::GridCell> MatrixGrid::cell_at(ImVec2 pos) const {
  if (!is_inside(pos, {view_min.x + label_width, view_min.y + header_height}, view_max)) return std::nullopt;
  const float x = std::floor((pos.x - origin.x - label_width) / pitch.x);
  const float y = std::floor((pos.y - origin.y - header_height) / pitch.y);
  if (x < 0 || y < 0 || x >= static_cast<float>(n_columns) || y >= static_cast<float>(n_rows))
    return std::nullopt;
  return GridCell{static_cast<std::size_t>(y), static_cast<std::size_t>(x)};
}

std::optional<std::size_t> MatrixGrid::label_at(ImVec2 pos) const {
  const ImVec2 min(view_min.x, view_min.y + header_height), max(view_min.x + label_width, view_max.y);
  const float y = std::floor((pos.y - origin.y - header_height) / pitch.y);
  if (!is_inside(pos, min, max) || y < 0 || y >= static_cast<float>(n_rows)) return std::nullopt;
  return static_cast<std::size_t>(y);
}

ImVec2 MatrixGrid::scroll_to(std::size_t row, std::size_t column) const {
  const ImVec2 min = cell_min(row, column);
  return {overflow(min.x, min.x + pitch.x, view_min.x + label_width, view_max.x),
          overflow(min.y, min.y + pitch.y, view_min.y + header_height, view_max.y)};
}

namespace {

/// Returns a grid with columns as wide as fit, at least as wide as their numbers; origin and view remain
/// unset.
MatrixGrid matrix_grid(const Metrics& metrics, std::size_t n_rows, std::size_t n_columns, float label_width,
                       float width, float numbers_width) {
  MatrixGrid grid;
  grid.n_rows = n_rows, grid.n_columns = n_columns;
  grid.label_width = label_width, grid.header_height = metrics.px(20), grid.gap = metrics.px(2);
  const float fitting = std::floor((width - label_width) / static_cast<float>(n_columns));
  const float least = std::max(metrics.px(44), std::ceil(numbers_width));
  grid.pitch = {std::clamp(fitting, least, std::max(least, metrics.px(72))), metrics.px(26)};
  // If not all columns fit, only whole ones are visible: a cut number would read as another number.
  if (const float whole = std::floor((width - label_width) / grid.pitch.x); fitting < least && whole >= 1)
    grid.pitch.x = std::floor((width - label_width) / whole);
  return grid;
}

namespace formats = core::formats;

const std::string place = "pasted text: ";

/// Reads the numbers of a text; commas are decimal ones if they cannot be separators.
formats::Tensor parse_pasted_numbers(std::string_view text) {
  try {
    return formats::readers::parse_numbers(text, place);
  } catch (const core::Error& error) {
    try {
      return formats::readers::parse_numbers(text, place, true);
    } catch (const core::Error&) {
      throw error;
    }
  }
}

}  // namespace

formats::Tensor parse_pasted_tensor(std::string_view text) {
  return parse_pasted_numbers(text);
}

arma::mat parse_pasted_matrix(std::string_view text) {
  const formats::Tensor tensor = parse_pasted_numbers(text);
  if (tensor.numbers.empty()) throw core::Error(place + "expected numbers, got nothing");
  if (tensor.shape.size() > 2)
    throw core::Error(place + "expected a matrix, got a tensor of shape " +
                      formats::shape_text(tensor.shape));
  arma::mat numbers = formats::matrix(tensor);
  for (std::size_t i = 0; i < numbers.n_rows; ++i)
    for (std::size_t j = 0; j < numbers.n_cols; ++j)
      if (!std::isfinite(numbers(i, j)))
        throw core::Error(fmt::format("{}row {}, column {}: expected a finite number, got {}", place, i + 1,
                                      j + 1, std::isnan(numbers(i, j)) ? "nan" : "an infinite one"));
  return numbers;
}

namespace {

std::string landmark(std::size_t row) {
  return "edit/token/" + std::to_string(row);
}

Rect label_box(const EditorFrame& e, std::size_t row) {
  const ImVec2 min(e.grid.label_left(), e.grid.cell_min(row, 0).y);
  return {min, {min.x + e.grid.label_width - e.grid.gap, min.y + e.grid.cell_size().y}};
}

void draw_label(const EditorFrame& e, std::size_t row) {
  const Palette& p = e.frame.palette;
  const Metrics& m = e.frame.metrics;
  const auto [min, max] = label_box(e, row);
  const float height = max.y - min.y;
  const std::string index = std::to_string(row);
  ImFont* mono = e.frame.fonts.mono12;
  const std::vector<std::string>* names = e.matrix.tokens ? e.matrix.tokens : e.matrix.names;
  if (!names) {
    draw_text_right(mono, max.x - m.px(8), centered_y(mono, min.y, height), p.faint, index);
  } else {
    ImFont* sans = e.frame.fonts.sans15;
    if (e.matrix.tokens) draw_rect(min, max, p.control.rest, m.px(3));
    float x = min.x + m.px(7);
    x += draw_text(mono, {x, centered_y(mono, min.y, height)}, p.faint, index) + m.px(7);
    draw_text_within(sans, {x, centered_y(sans, min.y, height)}, max.x - x - m.px(3),
                     e.matrix.tokens ? p.text : p.dim, visible_token((*names)[row]));
  }
  if (const HeadParts& heads = e.matrix.heads; heads.of_rows && row / heads.size == heads.selected)
    draw_rect({max.x - m.px(2), min.y}, {max.x, max.y}, p.selection);
  const auto& marked = e.matrix.marked_rows;
  if (std::find(marked.begin(), marked.end(), row) != marked.end()) {
    ImDrawList* list = ImGui::GetWindowDrawList();
    const float left = min.x - m.px(6);  // in the margin left of the grid
    list->PushClipRect({left, e.grid.view_min.y + e.grid.header_height}, {min.x, e.grid.view_max.y});
    draw_rect({left, min.y}, {left + m.px(2), max.y}, p.operand);
    list->PopClipRect();
  }
  e.frame.landmarks.mark(landmark(row), {min.x, std::max(min.y, e.grid.view_min.y + e.grid.header_height)},
                         {max.x, std::min(max.y, e.grid.view_max.y)});
}

void rename_field(const EditorFrame& e, std::size_t row) {
  const auto [min, max] = label_box(e, row);
  FieldStyle style;
  style.width = max.x - min.x, style.font = e.frame.fonts.sans15, style.alignment = Alignment::left;
  platform::move_to(min);
  const FieldAnswer answer = text_field(e.frame, landmark(row), (*e.matrix.tokens)[row], style);
  if (answer.lost_focus && answer.text)
    e.frame.commands.edit(RenameToken{e.matrix.place.nth, row, *answer.text});
}

void start_renaming(const EditorFrame& e, std::size_t row) {
  e.frame.commands.add(set<&Forms::typed>(TypedField{landmark(row), (*e.matrix.tokens)[row], true, true}));
}

void token_menu(const EditorFrame& e, std::size_t row) {
  const std::size_t n_tokens = e.matrix.numbers.n_rows();
  const auto line = [&](const char* words, const char* key, bool enabled = true) {
    const bool chosen = ImGui::MenuItem(words, nullptr, false, enabled);
    e.frame.landmarks.mark_item("edit/token_menu/" + std::string(key));
    return chosen;
  };
  const auto name = [](std::size_t at) { return std::to_string(at); };
  if (line("Rename", "rename")) start_renaming(e, row);
  if (line("Insert before", "insert_before")) e.frame.commands.edit(InsertToken{row, name(row)});
  if (line("Insert after", "insert_after")) e.frame.commands.edit(InsertToken{row + 1, name(row + 1)});
  if (line("Move up", "up", row > 0)) e.frame.commands.edit(MoveToken{e.matrix.place.nth, row, row - 1});
  if (line("Move down", "down", row + 1 < n_tokens))
    e.frame.commands.edit(MoveToken{e.matrix.place.nth, row, row + 1});
  if (line("Remove", "remove", n_tokens > 1)) e.frame.commands.edit(RemoveToken{row});
}

/// Moves a dragged token to the row that the accent line marks.
void drag_token(const EditorFrame& e) {
  const auto from = e.grid.label_at(ImGui::GetIO().MouseClickedPos[ImGuiMouseButton_Left]);
  if (!from) return;
  const float y = ImGui::GetMousePos().y - e.grid.origin.y - e.grid.header_height;
  const float last = static_cast<float>(e.grid.n_rows - 1);
  const auto to = static_cast<std::size_t>(std::clamp(std::floor(y / e.grid.pitch.y), 0.0f, last));
  if (to == *from) return;
  if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Left)) {
    const auto [min, max] = label_box(e, to);
    const float line = to > *from ? max.y : min.y - e.grid.gap;
    draw_rect({min.x, line}, {max.x, line + e.grid.gap}, e.frame.palette.accent);
  } else if (ImGui::IsItemDeactivated()) {
    e.frame.commands.edit(MoveToken{e.matrix.place.nth, *from, to});
  }
}

void token_mouse(const EditorFrame& e) {
  const MatrixGrid& g = e.grid;
  platform::move_to({g.view_min.x, g.view_min.y + g.header_height});
  hit_area("tokens", {g.label_width, g.view_max.y - g.view_min.y - g.header_height});
  const auto row = g.label_at(ImGui::GetMousePos());
  const bool over = ImGui::IsItemHovered() && row;
  drag_token(e);
  if (over && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) start_renaming(e, *row);
  if (over && ImGui::IsMouseReleased(ImGuiMouseButton_Right)) ImGui::OpenPopup(landmark(*row).c_str());
}

}  // namespace

void row_labels(const EditorFrame& e) {
  const MatrixGrid& g = e.grid;
  const auto rows = g.visible_rows();
  ImGui::PushClipRect({g.view_min.x, g.view_min.y + g.header_height}, g.view_max, true);
  for (std::size_t row = rows.first; row < rows.end; ++row) {
    const auto& typed = e.frame.forms.typed;
    if (e.matrix.tokens && typed && typed->field == landmark(row))
      rename_field(e, row);
    else
      draw_label(e, row);
    if (e.matrix.tokens && ImGui::BeginPopup(landmark(row).c_str())) {
      token_menu(e, row);
      ImGui::EndPopup();
    }
  }
  ImGui::PopClipRect();
  if (e.matrix.tokens) token_mouse(e);
}

namespace {

constexpr double value_per_pixel = 0.01, coarse = 10, fine = 0.1;
constexpr float drag_threshold = 3;      // in pixels
constexpr double rounding_factor = 1e9;  // dragged numbers are rounded to 1e-9, to avoid 0.30000000000000004

constexpr std::size_t max_measured_cells =
    4096;  // up to here all numbers determine the decimals, not only the visible ones

constexpr float min_padding = 6;   // of a cell, left plus right, at scale 1
constexpr double max_tint = 0.22;  // of the map on either side, so that the number stays prominent

ImFont* cell_font(const Frame& frame) {
  return frame.metrics.compact ? frame.fonts.mono13 : frame.fonts.mono14;
}

/// Returns the width of a cell with all digits; large matrices are assumed to have four decimals.
float digits_width(const Frame& frame, const core::attention::SharedMatrix& m) {
  core::text::NumberExtents needs;
  if (m.n_rows() * m.n_cols() <= max_measured_cells) {
    needs = core::text::measure_numbers(*m, {0, m.n_rows(), 0, m.n_cols()}, 1.0);
  } else {
    const double largest = m.largest_magnitude();
    needs = core::text::measure_numbers(arma::mat{-largest, 0.0001}, {0, 1, 0, 2}, 1.0);
  }
  return static_cast<float>(needs.characters(4)) * text_width(cell_font(frame), "0");
}

MatrixGrid grid_for(const Frame& frame, const EditedMatrix& m, float width) {
  const float labels = frame.metrics.px(m.tokens || m.names ? (frame.metrics.compact ? 80 : 84) : 26);
  const float digits = digits_width(frame, m.numbers), gap = frame.metrics.px(2),
              tight = digits + frame.metrics.px(min_padding) + gap;
  const float airy = frame.metrics.compact ? tight : digits + frame.metrics.px(12) + gap;
  // Padding shrinks before a column is lost.
  const auto columns = [&](float cell) { return std::floor((width - labels) / cell); };
  const float all = static_cast<float>(m.numbers.n_cols());
  MatrixGrid grid = matrix_grid(frame.metrics, m.numbers.n_rows(), m.numbers.n_cols(), labels, width,
                                std::min(columns(tight), all) > columns(airy) ? tight : airy);
  if (m.gradient) grid.strip = frame.metrics.px(18), grid.pitch.y += grid.strip;
  return grid;
}

/// Returns a copy of a range of cells.
arma::mat copy_cells(const core::attention::SharedMatrix& m, const CellRange& cells) {
  arma::mat numbers(cells.row1 - cells.row0, cells.column1 - cells.column0);
  for (std::size_t c = 0; c < numbers.n_cols; ++c)
    for (std::size_t r = 0; r < numbers.n_rows; ++r)
      numbers.at(r, c) = m.at(cells.row0 + r, cells.column0 + c);
  return numbers;
}

Rgb cell_background(const Palette& palette, double number, double largest) {
  if (!std::isfinite(number)) return palette.control.rest;
  const double share = largest > 0 ? number / largest : 0;
  return render::color_at(render::ColorMap::values, palette.dark, 0.5 + max_tint * share);
}

/// Draws a line before the first column of each head, and one below those of the displayed head, whose
/// header ends at bottom_left; returns whether the column belongs to it.
bool draw_head_limit(const EditorFrame& e, std::size_t column, ImVec2 bottom_left) {
  const HeadParts& heads = e.matrix.heads;
  if (heads.size == 0 || heads.of_rows) return false;
  const Palette& p = e.frame.palette;
  const float thick = e.frame.metrics.px(2);
  if (column % heads.size == 0 && column > 0)
    draw_rect({bottom_left.x - e.grid.gap, bottom_left.y - e.frame.metrics.px(14)},
              {bottom_left.x - e.grid.gap + 1, bottom_left.y}, p.strong_line);
  if (column / heads.size != heads.selected) return false;
  draw_rect({bottom_left.x, bottom_left.y - thick}, {bottom_left.x + e.grid.cell_size().x, bottom_left.y},
            p.selection);
  return true;
}

/// Scrolls to the columns or rows of the displayed head after another head or matrix was chosen.
void scroll_to_head(const EditorFrame& e) {
  const HeadParts& heads = e.matrix.heads;
  ImGuiStorage& storage = *ImGui::GetStateStorage();
  int &shown = *storage.GetIntRef(ImGui::GetID("head"), 0),
      &n_frames =
          *storage.GetIntRef(ImGui::GetID("frames"), 0);  // left; another matrix has its size in the second
  const ImGuiID now =
      ImGui::GetID(fmt::format("{} {}", static_cast<int>(e.matrix.place.name), heads.selected).c_str());
  if (std::exchange(shown, static_cast<int>(now)) != static_cast<int>(now)) n_frames = 2;
  if (n_frames == 0 || heads.size == 0) return;
  --n_frames;
  const auto first = static_cast<float>(heads.size * heads.selected);
  ImGui::SetScrollX(heads.of_rows ? 0 : first * e.grid.pitch.x);
  if (heads.of_rows) ImGui::SetScrollY(first * e.grid.pitch.y);
}

void draw_column_labels(const EditorFrame& e) {
  const MatrixGrid& g = e.grid;
  const auto columns = g.visible_columns();
  ImFont* font = e.frame.fonts.mono12;
  ImGui::PushClipRect({g.view_min.x + g.label_width, g.view_min.y}, g.view_max, true);
  for (std::size_t c = columns.first; c < columns.end; ++c) {
    const std::string index = std::to_string(c);
    const float x = g.cell_min(0, c).x + (g.cell_size().x - text_width(font, index)) / 2;
    const bool is_selected = draw_head_limit(e, c, {g.cell_min(0, c).x, g.header_top() + g.header_height});
    draw_text(font, {std::round(x), centered_y(font, g.header_top(), g.header_height)},
              is_selected ? e.frame.palette.text : e.frame.palette.faint, index);
  }
  ImGui::PopClipRect();
}

/// Draws the gradient of a number in signed color below its cell.
void draw_gradient(const EditorFrame& e, std::size_t row, std::size_t column, ImVec2 min, ImVec2 max,
                   const NumberFormat& format) {
  const double gradient = (*e.matrix.gradient)(row, column);
  const Palette& p = e.frame.palette;
  const Rgb color = !std::isfinite(gradient)
                        ? p.hatch.background
                        : render::color_at(e.frame.displayed.look.colors.diverging, p.dark,
                                           0.5 + 0.5 * gradient / e.matrix.largest_gradient);
  draw_rect(min, max, color, e.frame.metrics.px(2));
  const Rgb ink = std::isnan(gradient) ? p.status.bad : gradient == 0 ? p.faint : readable_on(color);
  draw_text(e.frame.fonts.mono12, {std::round((min.x + max.x) / 2), std::round((min.y + max.y) / 2)},
            Align::middle, ink, format.fits ? cell_text(gradient, format, false) : "…");
  const ImVec2 lo{e.grid.view_min.x + e.grid.label_width, e.grid.view_min.y + e.grid.header_height};
  if (is_inside(ImGui::GetMousePos(), min, max) && is_inside(ImGui::GetMousePos(), lo, e.grid.view_max) &&
      ImGui::IsWindowHovered())
    ImGui::SetTooltip("∂ %s", display_number(gradient).c_str());
}

/// Draws the gradients of the visible numbers.
void draw_gradients(const EditorFrame& e) {
  const MatrixGrid& g = e.grid;
  const arma::mat& numbers = *e.matrix.gradient;
  const auto rows = g.visible_rows(), columns = g.visible_columns();
  const int letters = static_cast<int>((g.cell_size().x - 2) / text_width(e.frame.fonts.mono12, "0"));
  const bool few = numbers.n_elem <= max_measured_cells;
  const NumberFormat format = choose_format(numbers,
                                            few ? CellRange{0, numbers.n_rows, 0, numbers.n_cols}
                                                : CellRange{rows.first, rows.end, columns.first, columns.end},
                                            letters, 1.0);
  for (std::size_t r = rows.first; r < rows.end; ++r)
    for (std::size_t c = columns.first; c < columns.end; ++c) {
      const ImVec2 cell = g.cell_min(r, c);
      const float top = cell.y + g.cell_size().y;
      draw_gradient(e, r, c, {cell.x, top + e.frame.metrics.px(1)},
                    {cell.x + g.cell_size().x, top + g.strip - 1}, format);
    }
}

void draw_cell(const EditorFrame& e, std::size_t row, std::size_t column, double largest,
               const NumberFormat& format) {
  const Palette& p = e.frame.palette;
  ImFont* font = cell_font(e.frame);
  const double number = e.matrix.numbers.at(row, column);
  const ImVec2 min = e.grid.cell_min(row, column), size = e.grid.cell_size(),
               max(min.x + size.x, min.y + size.y);
  const Rgb background = cell_background(p, number, largest);
  draw_rect(min, max, background, e.frame.metrics.px(3));
  const Rgb ink = std::isfinite(number) ? readable_on(background) : p.status.bad;
  const std::string text = format.fits ? cell_text(number, format, false) : "…";
  const float spare = size.x - text_width(font, text);
  draw_text_right(font, max.x - std::min(e.frame.metrics.px(6), std::max(1.0f, std::floor(spare / 2))),
                  centered_y(font, min.y, size.y), ink, text);
  const ImVec2 lo = e.grid.view_min, hi = e.grid.view_max;
  e.frame.landmarks.mark(
      fmt::format("edit/cell/{}/{}", row, column),
      {std::max(min.x, lo.x + e.grid.label_width), std::max(min.y, lo.y + e.grid.header_height)},
      {std::min(max.x, hi.x), std::min(max.y, hi.y)});
}

void draw_cells(const EditorFrame& e) {
  const MatrixGrid& g = e.grid;
  const auto rows = g.visible_rows(), columns = g.visible_columns();
  const core::attention::SharedMatrix& m = e.matrix.numbers;
  const double largest = m.largest_magnitude();
  const float room = g.cell_size().x - e.frame.metrics.px(min_padding);
  const int letters = static_cast<int>(room / text_width(cell_font(e.frame), "0"));
  const bool few = m.n_rows() * m.n_cols() <= max_measured_cells;
  const arma::mat counted = copy_cells(m, few ? CellRange{0, m.n_rows(), 0, m.n_cols()}
                                              : CellRange{rows.first, rows.end, columns.first, columns.end});
  // Numbers are edited as they are displayed, so in no other unit.
  const NumberFormat format = choose_format(counted, {0, counted.n_rows, 0, counted.n_cols}, letters, 1.0);
  ImGui::PushClipRect({g.view_min.x + g.label_width, g.view_min.y + g.header_height}, g.view_max, true);
  for (std::size_t r = rows.first; r < rows.end; ++r)
    for (std::size_t c = columns.first; c < columns.end; ++c) draw_cell(e, r, c, largest, format);
  if (e.matrix.gradient) draw_gradients(e);
  if (const auto& cursor = e.frame.pending.selection.cursor;
      cursor && cursor->row < m.n_rows() && cursor->column < m.n_cols()) {
    const ImVec2 min = g.cell_min(cursor->row, cursor->column),
                 max(min.x + g.cell_size().x, min.y + g.cell_size().y);
    outline(min, max, e.frame.palette.accent, 2);
  }
  ImGui::PopClipRect();
}

/// Adds the mouse's movement to the number under the cursor; in the first frame of a drag, all movement since
/// the click.
void drag_number(const EditorFrame& e) {
  const ImGuiIO& io = ImGui::GetIO();
  const auto& cursor = e.frame.pending.selection.cursor;
  if (!cursor || cursor->row >= e.matrix.numbers.n_rows() || cursor->column >= e.matrix.numbers.n_cols())
    return;
  if (!ImGui::IsMouseDragging(ImGuiMouseButton_Left, drag_threshold)) return;
  if (!cursor->dragging) {
    EditCursor dragging = *cursor;
    dragging.dragging = true;
    e.frame.commands.add(set<&Selection::cursor>(dragging));
  }
  const ImVec2 moved =
      cursor->dragging ? io.MouseDelta : ImGui::GetMouseDragDelta(ImGuiMouseButton_Left, drag_threshold);
  const double pixels = (moved.x - moved.y) / static_cast<double>(e.frame.metrics.scale);
  if (pixels == 0) return;
  const double step = value_per_pixel * (io.KeyShift ? coarse : 1) * (io.KeyAlt ? fine : 1);
  const double old = e.matrix.numbers.at(cursor->row, cursor->column);
  const double number =
      std::round(((std::isfinite(old) ? old : 0) + pixels * step) * rounding_factor) / rounding_factor;
  e.frame.commands.edit(core::editing::SetCell{e.matrix.place, cursor->row, cursor->column, number});
}

/// Puts the cursor on a cell.
void put_cursor(const Frame& frame, std::size_t row, std::size_t column) {
  frame.commands.add(set<&Selection::cursor>(EditCursor{row, column}));
  if (is_refused(frame, cell_field)) frame.commands.add(set<&Forms::submitted>(std::nullopt));
}

/// Moves the cursor within the matrix and scrolls it into view.
void move(const EditorFrame& e, long rows, long columns) {
  const auto moved = [](std::size_t from, long by, std::size_t n) {
    return static_cast<std::size_t>(std::clamp(static_cast<long>(from) + by, 0L, static_cast<long>(n) - 1));
  };
  const std::size_t row = moved(e.frame.pending.selection.cursor->row, rows, e.grid.n_rows);
  const std::size_t column = moved(e.frame.pending.selection.cursor->column, columns, e.grid.n_columns);
  const ImVec2 scroll = e.grid.scroll_to(row, column);
  ImGui::SetScrollX(ImGui::GetScrollX() + scroll.x);
  ImGui::SetScrollY(ImGui::GetScrollY() + scroll.y);
  put_cursor(e.frame, row, column);
}

/// Starts typing at the cursor; if selected, the first character replaces the text.
void start_typing(const Frame& frame, std::string text, bool selected) {
  frame.commands.add(set<&Forms::typed>(TypedField{cell_field, std::move(text), true, selected}));
}

/// Draws the context menu of the cell under the cursor; a right click moves the cursor and opens it.
void cell_menu(const EditorFrame& e, bool over) {
  constexpr const char* name = "number";
  if (over && ImGui::IsMouseReleased(ImGuiMouseButton_Right)) {
    if (const auto cell = e.grid.cell_at(ImGui::GetMousePos())) put_cursor(e.frame, cell->row, cell->column);
    ImGui::OpenPopup(name);
  }
  if (!ImGui::BeginPopup(name)) return;
  if (const auto& cursor = e.frame.pending.selection.cursor;
      cursor && cursor->row < e.grid.n_rows && cursor->column < e.grid.n_columns) {
    const std::string number = core::text::number_text(e.matrix.numbers.at(cursor->row, cursor->column));
    const auto line = [&](const char* words, const char* key) {
      const bool chosen = ImGui::MenuItem(words);
      e.frame.landmarks.mark_item("edit/cell_menu/" + std::string(key));
      return chosen;
    };
    ImGui::TextDisabled("%zu, %zu:  %s", cursor->row, cursor->column, number.c_str());
    ImGui::Separator();
    if (line("Copy", "copy")) e.frame.commands.add(CopyText{number});
    if (line("Type a value", "type")) start_typing(e.frame, number, true);
    if (line("Set to 0", "zero"))
      e.frame.commands.edit(core::editing::SetCell{e.matrix.place, cursor->row, cursor->column, 0});
  }
  ImGui::EndPopup();
}

bool is_typing_cell(const Forms& forms) {
  return forms.typed && forms.typed->field == cell_field;
}

void edit_by_mouse(const EditorFrame& e) {
  const MatrixGrid& g = e.grid;
  const ImVec2 min(g.view_min.x + g.label_width, g.view_min.y + g.header_height);
  platform::move_to(min);
  hit_area("cells", {g.view_max.x - min.x, g.view_max.y - min.y});
  const auto cell = g.cell_at(ImGui::GetMousePos());
  if (ImGui::IsItemHovered() && cell) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
    if (!ImGui::IsItemActive() && !is_typing_cell(e.frame.forms))
      tooltip(core::text::display_number(e.matrix.numbers.at(cell->row, cell->column)));
  }
  const bool over = ImGui::IsItemHovered() && cell;
  if (ImGui::IsItemActivated() && cell) put_cursor(e.frame, cell->row, cell->column);
  if (ImGui::IsItemHovered() && cell && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
    put_cursor(e.frame, cell->row, cell->column);
    start_typing(e.frame, core::text::number_text(e.matrix.numbers.at(cell->row, cell->column)), true);
  } else if (ImGui::IsItemActive() && !is_typing_cell(e.frame.forms)) {
    drag_number(e);
  }
  cell_menu(e, over);
}

void update_cursor_focus(const Frame& frame) {
  const auto& cursor = frame.pending.selection.cursor;
  if (!cursor) return;
  if (cursor->needs_focus) {
    ImGui::SetWindowFocus();
    EditCursor arrived = *cursor;
    arrived.needs_focus = false;
    frame.commands.add(set<&Selection::cursor>(arrived));
  } else if (!ImGui::IsWindowFocused() && !ImGui::IsPopupOpen("number")) {
    frame.commands.add(set<&Selection::cursor>(std::nullopt));
  }
}

}  // namespace

float matrix_editor_height(const Frame& frame, const EditedMatrix& matrix, float width) {
  const ImVec2 size = grid_for(frame, matrix, width).size();
  return size.y + (size.x > width ? ImGui::GetStyle().ScrollbarSize : 0);
}

float matrix_editor_height(const Frame& frame, const EditedMatrix& matrix, ImVec2 room) {
  const float all = matrix_editor_height(frame, matrix, room.x), bar = ImGui::GetStyle().ScrollbarSize;
  if (all <= room.y) return all;
  const MatrixGrid grid = grid_for(frame, matrix, room.x - bar);
  const float around = grid.header_height + (grid.size().x > room.x - bar ? bar : 0);
  return around + grid.pitch.y * std::max(1.0f, std::floor((room.y - around) / grid.pitch.y));
}

namespace {

/// Moves the cursor to the next or previous cell, across the ends of rows.
void move_to_next(const EditorFrame& e, bool back) {
  const auto& cursor = *e.frame.pending.selection.cursor;
  const long all = static_cast<long>(e.grid.n_columns);
  if (!back && cursor.column + 1 == e.grid.n_columns)
    return move(e, 1, cursor.row + 1 < e.grid.n_rows ? -all : 0);
  if (back && cursor.column == 0) return move(e, -1, cursor.row > 0 ? all : 0);
  move(e, 0, back ? -1 : 1);
}

/// Returns whether the text is a number, which the cell then has.
bool commit(const EditorFrame& e, const std::string& text) {
  const auto& cursor = *e.frame.pending.selection.cursor;
  if (text == core::text::number_text(e.matrix.numbers.at(cursor.row, cursor.column))) return true;
  const auto number = read_number(text);
  if (number)
    e.frame.commands.edit(core::editing::SetCell{e.matrix.place, cursor.row, cursor.column, *number});
  else
    e.frame.commands.add(ShowMessage{
        fmt::format("row {}, column {}: expected a number, found \"{}\"", cursor.row, cursor.column, text),
        true});
  return number.has_value();
}

/// Draws the field over the cursor's cell while a number is typed, and after it was refused.
void typing_field(const EditorFrame& e) {
  const auto& cursor = e.frame.pending.selection.cursor;
  const bool is_typing = is_typing_cell(e.frame.forms);
  const auto& submitted = e.frame.forms.submitted;
  const bool is_wrong = submitted && submitted->field == cell_field && e.frame.message.is_error;
  if ((!is_typing && !is_wrong) || !cursor || cursor->row >= e.grid.n_rows ||
      cursor->column >= e.grid.n_columns)
    return;
  FieldStyle style;
  style.width = e.grid.cell_size().x, style.font = e.frame.fonts.mono14, style.alignment = Alignment::right;
  platform::move_to(e.grid.cell_min(cursor->row, cursor->column));
  const FieldAnswer answer = text_field(e.frame, cell_field, "", style);
  if (!is_typing) return;
  const std::string text = e.frame.forms.typed->text;
  const bool escaped = key_pressed(ImGuiKey_Escape, false);
  const bool entered = key_pressed(ImGuiKey_Enter, false) || key_pressed(platform::keypad_enter, false);
  const bool up = key_pressed(ImGuiKey_UpArrow), down = key_pressed(ImGuiKey_DownArrow),
             tab = key_pressed(ImGuiKey_Tab);
  bool is_number = true;
  if (answer.lost_focus) {
    if (!escaped) is_number = commit(e, answer.text.value_or(text));
    if (entered && is_number) move(e, 1, 0);
  } else if (up || down || tab || (entered && e.frame.forms.typed->needs_focus)) {
    is_number = commit(e, text);
    e.frame.commands.add(set<&Forms::typed>(std::nullopt));
  }
  if (!is_number) return;
  if (tab) move_to_next(e, ImGui::GetIO().KeyShift);
  if (up || down || (entered && !answer.lost_focus)) move(e, up ? -1 : 1, 0);
}

void paste(const EditorFrame& e) {
  const char* text = ImGui::GetClipboardText();
  try {
    const arma::mat block = parse_pasted_matrix(text ? text : "");
    const auto& cursor = *e.frame.pending.selection.cursor;
    const std::size_t rows = e.grid.n_rows - cursor.row, columns = e.grid.n_columns - cursor.column;
    if (block.n_rows > rows || block.n_cols > columns)
      throw core::Error(
          fmt::format("pasted text: a block of {} does not fit; from row {}, column {} there is room for {}",
                      core::text::shape_text(block.n_rows, block.n_cols), cursor.row, cursor.column,
                      core::text::shape_text(rows, columns)));
    e.frame.commands.edit(core::editing::SetBlock{e.matrix.place, cursor.row, cursor.column, block});
  } catch (const core::Error& error) {
    e.frame.commands.add(ShowMessage{error.what(), true});
  }
}

/// Returns the text typed in this frame if a number can begin with it, else "".
std::string typed_digits() {
  const std::string text = typed_characters();
  return text.find_first_of("0123456789+-.,") == 0 ? text : "";
}

long page_rows(const EditorFrame& e) {
  const auto rows = e.grid.visible_rows();
  return std::max(1L, static_cast<long>(rows.end - rows.first) - 1);
}

/// Handles moving, deleting, pasting and the start of typing; the editor has the keyboard focus.
void edit_by_keys(const EditorFrame& e) {
  const ImGuiIO& io = ImGui::GetIO();
  const auto& cursor = *e.frame.pending.selection.cursor;
  if (is_typing_cell(e.frame.forms) || io.WantTextInput) return;
  if (cursor.row >= e.grid.n_rows || cursor.column >= e.grid.n_columns) return move(e, 0, 0);
  const long all = static_cast<long>(std::max(e.grid.n_rows, e.grid.n_columns));
  if (!e.frame.pending.selection.lesson) {  // in a lesson these keys change the step
    if (key_pressed(ImGuiKey_LeftArrow)) move(e, 0, -1);
    if (key_pressed(ImGuiKey_RightArrow)) move(e, 0, 1);
  }
  if (key_pressed(ImGuiKey_UpArrow)) move(e, -1, 0);
  if (key_pressed(ImGuiKey_DownArrow)) move(e, 1, 0);
  if (key_pressed(ImGuiKey_Home)) move(e, io.KeyCtrl ? -all : 0, -all);
  if (key_pressed(ImGuiKey_End)) move(e, io.KeyCtrl ? all : 0, all);
  if (key_pressed(ImGuiKey_PageUp)) move(e, -page_rows(e), 0);
  if (key_pressed(ImGuiKey_PageDown)) move(e, page_rows(e), 0);
  if (key_pressed(ImGuiKey_Tab)) move_to_next(e, io.KeyShift);
  if (key_pressed(ImGuiKey_Delete, false) || key_pressed(ImGuiKey_Backspace, false))
    e.frame.commands.edit(core::editing::SetCell{e.matrix.place, cursor.row, cursor.column, 0});
  if (io.KeyCtrl && key_pressed(ImGuiKey_V, false)) paste(e);
  if (key_pressed(ImGuiKey_Enter, false) || key_pressed(platform::keypad_enter, false))
    start_typing(e.frame, core::text::number_text(e.matrix.numbers.at(cursor.row, cursor.column)), true);
  else if (const std::string digits = typed_digits(); !io.KeyCtrl && !digits.empty())
    start_typing(e.frame, digits, false);
}

}  // namespace

void matrix_editor(const Frame& frame, const EditedMatrix& matrix, ImVec2 size) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  const bool visible = ImGui::BeginChild("matrix", size, false,
                                         ImGuiWindowFlags_HorizontalScrollbar | ImGuiWindowFlags_NoNavInputs);
  ImGui::PopStyleVar();
  if (visible) {
    const float bar = ImGui::GetStyle().ScrollbarSize;
    EditorFrame editor{frame, matrix, grid_for(frame, matrix, size.x)};
    if (editor.grid.size().y > size.y) editor.grid = grid_for(frame, matrix, size.x - bar);
    MatrixGrid& grid = editor.grid;
    grid.view_min = ImGui::GetWindowPos();
    const ImVec2 whole = grid.size();
    grid.view_max = {grid.view_min.x + size.x - (whole.y > size.y ? bar : 0),
                     grid.view_min.y + size.y - (whole.x > size.x ? bar : 0)};
    grid.origin = ImGui::GetCursorScreenPos();
    update_cursor_focus(frame);
    scroll_to_head(editor);
    draw_cells(editor);
    draw_column_labels(editor);
    typing_field(editor);
    row_labels(editor);
    edit_by_mouse(editor);
    if (frame.pending.selection.cursor && ImGui::IsWindowFocused()) edit_by_keys(editor);
    reserve_room(grid.origin, whole);
  }
  ImGui::EndChild();
}

}  // namespace app::widgets
