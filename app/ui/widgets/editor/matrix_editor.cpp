#include "app/ui/widgets/editor/matrix_editor.hpp"

#include <algorithm>
#include <cmath>

#include "app/screen/painter.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/editor/matrix_editor_parts.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/number_text.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/number.hpp"

namespace app::widgets {
namespace {

constexpr double value_per_pixel = 0.01, coarse = 10, fine = 0.1;
constexpr float drag_threshold = 3;   // pixels
constexpr double clean_digits = 1e9;  // dragged numbers are kept to so many parts, lest 0.1 + 0.2 show
constexpr std::size_t few_cells =
    4096;  // up to here every number counts for the decimals, not only the visible ones
constexpr float least_padding = 6;  // of a cell, left and right together, at scale 1
constexpr double strongest = 0.22;  // of the map on either side: the number must stay the loudest thing

ImFont* cell_font(const Frame& frame) {
  return frame.metrics.compact ? frame.fonts.mono13 : frame.fonts.mono14;
}

/// How wide a cell is with all digits of its numbers: large matrices are taken to have four decimals.
float digits_width(const Frame& frame, const core::attention::SharedMatrix& m) {
  core::text::NumberNeeds needs;
  if (m.n_rows() * m.n_cols() <= few_cells) {
    needs = core::text::needs_of(*m, {0, m.n_rows(), 0, m.n_cols()}, 1.0);
  } else {
    const double largest = m.largest_magnitude();
    needs = core::text::needs_of(arma::mat{-largest, 0.0001}, {0, 1, 0, 2}, 1.0);
  }
  return static_cast<float>(needs.characters(4)) * text_width(cell_font(frame), "0");
}

MatrixGrid grid_for(const Frame& frame, const EditedMatrix& m, float width) {
  const float labels = frame.metrics.px(m.tokens || m.names ? (frame.metrics.compact ? 80 : 84) : 26);
  const float digits = digits_width(frame, m.numbers), gap = frame.metrics.px(2),
              tight = digits + frame.metrics.px(least_padding) + gap;
  const float airy = frame.metrics.compact ? tight : digits + frame.metrics.px(12) + gap;
  // The air around the numbers goes before a column does.
  const auto columns = [&](float cell) { return std::floor((width - labels) / cell); };
  const float all = static_cast<float>(m.numbers.n_cols());
  return matrix_grid(frame.metrics, m.numbers.n_rows(), m.numbers.n_cols(), labels, width,
                     std::min(columns(tight), all) > columns(airy) ? tight : airy);
}

/// The numbers in some rows and columns.
arma::mat cut_out(const core::attention::SharedMatrix& m, const CellRange& cells) {
  arma::mat numbers(cells.row1 - cells.row0, cells.column1 - cells.column0);
  for (std::size_t c = 0; c < numbers.n_cols; ++c)
    for (std::size_t r = 0; r < numbers.n_rows; ++r)
      numbers.at(r, c) = m.at(cells.row0 + r, cells.column0 + c);
  return numbers;
}

Rgb ground_of(const Palette& palette, double number, double largest) {
  if (!std::isfinite(number)) return palette.control.rest;
  const double share = largest > 0 ? number / largest : 0;
  return render::color_at(render::ColorMap::values, palette.dark, 0.5 + strongest * share);
}

void draw_column_labels(const EditorFrame& e) {
  const MatrixGrid& g = e.grid;
  const auto columns = g.visible_columns();
  ImFont* font = e.frame.fonts.mono12;
  ImGui::PushClipRect({g.view_min.x + g.label_width, g.view_min.y}, g.view_max, true);
  for (std::size_t c = columns.first; c < columns.end; ++c) {
    const std::string index = std::to_string(c);
    const float x = g.cell_min(0, c).x + (g.cell_size().x - text_width(font, index)) / 2;
    draw_text(font, {std::round(x), centred_y(font, g.header_top(), g.header_height)}, e.frame.palette.faint,
              index);
  }
  ImGui::PopClipRect();
}

void draw_cell(const EditorFrame& e, std::size_t row, std::size_t column, double largest,
               const NumberFormat& format) {
  const Palette& p = e.frame.palette;
  ImFont* font = cell_font(e.frame);
  const double number = e.matrix.numbers.at(row, column);
  const ImVec2 min = e.grid.cell_min(row, column), size = e.grid.cell_size(),
               max(min.x + size.x, min.y + size.y);
  const Rgb ground = ground_of(p, number, largest);
  ImGui::GetWindowDrawList()->AddRectFilled(min, max, packed(ground), e.frame.metrics.px(3));
  const Rgb ink = std::isfinite(number) ? readable_on(ground) : p.status.bad;
  const std::string text = format.fits ? cell_text(number, format, false) : "…";
  const float spare = size.x - text_width(font, text);
  draw_text_right(font, max.x - std::min(e.frame.metrics.px(6), std::max(1.0f, std::floor(spare / 2))),
                  centred_y(font, min.y, size.y), ink, text);
  const ImVec2 lo = e.grid.view_min, hi = e.grid.view_max;
  e.frame.landmarks.mark(
      "edit/cell/" + std::to_string(row) + "/" + std::to_string(column),
      {std::max(min.x, lo.x + e.grid.label_width), std::max(min.y, lo.y + e.grid.header_height)},
      {std::min(max.x, hi.x), std::min(max.y, hi.y)});
}

void draw_cells(const EditorFrame& e) {
  const MatrixGrid& g = e.grid;
  const auto rows = g.visible_rows(), columns = g.visible_columns();
  const core::attention::SharedMatrix& m = e.matrix.numbers;
  const double largest = m.largest_magnitude();
  const float room = g.cell_size().x - e.frame.metrics.px(least_padding);
  const int letters = static_cast<int>(room / text_width(cell_font(e.frame), "0"));
  const bool few = m.n_rows() * m.n_cols() <= few_cells;
  const arma::mat counted = cut_out(m, few ? CellRange{0, m.n_rows(), 0, m.n_cols()}
                                           : CellRange{rows.first, rows.end, columns.first, columns.end});
  // An edited number is shown as it is typed, in no other unit.
  const NumberFormat format = choose_format(counted, {0, counted.n_rows, 0, counted.n_cols}, letters, 1.0);
  ImGui::PushClipRect({g.view_min.x + g.label_width, g.view_min.y + g.header_height}, g.view_max, true);
  for (std::size_t r = rows.first; r < rows.end; ++r)
    for (std::size_t c = columns.first; c < columns.end; ++c) draw_cell(e, r, c, largest, format);
  if (const auto& cursor = e.frame.newest.selection.cursor;
      cursor && cursor->row < m.n_rows() && cursor->column < m.n_cols()) {
    const ImVec2 min = g.cell_min(cursor->row, cursor->column),
                 max(min.x + g.cell_size().x, min.y + g.cell_size().y);
    outline(ImGui::GetWindowDrawList(), min, max, packed(e.frame.palette.accent), 2);
  }
  ImGui::PopClipRect();
}

/// Adds to the number under the cursor what the mouse moved: in the first frame of a drag all of its way so
/// far.
void drag_number(const EditorFrame& e) {
  const ImGuiIO& io = ImGui::GetIO();
  const auto& cursor = e.frame.newest.selection.cursor;
  if (!cursor || cursor->row >= e.matrix.numbers.n_rows() || cursor->column >= e.matrix.numbers.n_cols())
    return;
  if (!ImGui::IsMouseDragging(ImGuiMouseButton_Left, drag_threshold)) return;
  if (!cursor->dragging) {
    e.frame.commands.look([](View& view) {
      if (view.selection.cursor) view.selection.cursor->dragging = true;
    });
  }
  const ImVec2 moved =
      cursor->dragging ? io.MouseDelta : ImGui::GetMouseDragDelta(ImGuiMouseButton_Left, drag_threshold);
  const double pixels = (moved.x - moved.y) / static_cast<double>(e.frame.metrics.scale);
  if (pixels == 0) return;
  const double step = value_per_pixel * (io.KeyShift ? coarse : 1) * (io.KeyAlt ? fine : 1);
  const double old = e.matrix.numbers.at(cursor->row, cursor->column);
  const double number =
      std::round(((std::isfinite(old) ? old : 0) + pixels * step) * clean_digits) / clean_digits;
  e.frame.commands.edit(core::editing::SetCell{e.matrix.place, cursor->row, cursor->column, number});
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
      tooltip(core::text::told_number(e.matrix.numbers.at(cell->row, cell->column)));
  }
  if (ImGui::IsItemActivated() && cell) put_cursor(e.frame, cell->row, cell->column);
  if (ImGui::IsItemHovered() && cell && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
    put_cursor(e.frame, cell->row, cell->column);
    start_typing(e.frame, core::text::number_text(e.matrix.numbers.at(cell->row, cell->column)), true);
  } else if (ImGui::IsItemActive() && !is_typing_cell(e.frame.forms)) {
    drag_number(e);
  }
}

void follow_focus(const Frame& frame) {
  const auto& cursor = frame.newest.selection.cursor;
  if (!cursor) return;
  if (cursor->waiting) {
    ImGui::SetWindowFocus();
    frame.commands.look([](View& view) {
      if (view.selection.cursor) view.selection.cursor->waiting = false;
    });
  } else if (!ImGui::IsWindowFocused()) {
    frame.commands.look([](View& view) { view.selection.cursor.reset(); });
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
    follow_focus(frame);
    draw_cells(editor);
    draw_column_labels(editor);
    typing_field(editor);
    row_labels(editor);
    edit_by_mouse(editor);
    if (frame.newest.selection.cursor && ImGui::IsWindowFocused()) edit_by_keys(editor);
    platform::move_to(grid.origin);
    ImGui::Dummy(whole);
  }
  ImGui::EndChild();
}

}  // namespace app::widgets
