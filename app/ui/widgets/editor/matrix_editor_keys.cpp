#include <algorithm>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/editor/matrix_editor_parts.hpp"
#include "app/ui/widgets/editor/pasted_numbers.hpp"
#include "app/ui/widgets/fields.hpp"
#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"

namespace app::widgets {
namespace {

using platform::key_pressed;

/// Moves the cursor as far as the matrix goes and scrolls it into sight.
void move(const EditorFrame& e, long rows, long columns) {
  const auto moved = [](std::size_t from, long by, std::size_t n) {
    return static_cast<std::size_t>(std::clamp(static_cast<long>(from) + by, 0L, static_cast<long>(n) - 1));
  };
  const std::size_t row = moved(e.frame.newest.selection.cursor->row, rows, e.grid.n_rows);
  const std::size_t column = moved(e.frame.newest.selection.cursor->column, columns, e.grid.n_columns);
  const ImVec2 scroll = e.grid.scroll_to(row, column);
  ImGui::SetScrollX(ImGui::GetScrollX() + scroll.x);
  ImGui::SetScrollY(ImGui::GetScrollY() + scroll.y);
  put_cursor(e.frame, row, column);
}

/// One cell on; behind the last column of a row comes the next row.
void move_to_next(const EditorFrame& e, bool back) {
  const auto& cursor = *e.frame.newest.selection.cursor;
  const long all = static_cast<long>(e.grid.n_columns);
  if (!back && cursor.column + 1 == e.grid.n_columns)
    return move(e, 1, cursor.row + 1 < e.grid.n_rows ? -all : 0);
  if (back && cursor.column == 0) return move(e, -1, cursor.row > 0 ? all : 0);
  move(e, 0, back ? -1 : 1);
}

void paste(const EditorFrame& e) {
  const char* text = ImGui::GetClipboardText();
  try {
    const arma::mat block = pasted_numbers(text ? text : "");
    const auto& cursor = *e.frame.newest.selection.cursor;
    const std::size_t rows = e.grid.n_rows - cursor.row, columns = e.grid.n_columns - cursor.column;
    if (block.n_rows > rows || block.n_cols > columns)
      throw core::Error("pasted text: a block of " + core::text::shape_text(block.n_rows, block.n_cols) +
                        " does not fit; from row " + std::to_string(cursor.row) + ", column " +
                        std::to_string(cursor.column) + " there is room for " +
                        core::text::shape_text(rows, columns));
    e.frame.commands.edit(core::editing::SetBlock{e.matrix.place, cursor.row, cursor.column, block});
  } catch (const core::Error& error) {
    e.frame.commands.add(ShowMessage{error.what(), true});
  }
}

/// What was typed in this frame, when a number can begin like that.
std::string typed_digits() {
  const std::string text = typed_letters();
  return text.find_first_of("0123456789+-.,") == 0 ? text : "";
}

long page_rows(const EditorFrame& e) {
  const auto rows = e.grid.visible_rows();
  return std::max(1L, static_cast<long>(rows.end - rows.first) - 1);
}

void commit(const EditorFrame& e, const std::string& text) {
  const auto& cursor = *e.frame.newest.selection.cursor;
  if (text == core::text::number_text(e.matrix.numbers.at(cursor.row, cursor.column))) return;
  if (const auto number = read_number(text))
    e.frame.commands.edit(core::editing::SetCell{e.matrix.place, cursor.row, cursor.column, *number});
  else
    e.frame.commands.add(ShowMessage{"row " + std::to_string(cursor.row) + ", column " +
                                         std::to_string(cursor.column) + ": expected a number, found \"" +
                                         text + "\"",
                                     true});
}

}  // namespace

bool is_typing_cell(const Forms& forms) {
  return forms.typed && forms.typed->field == cell_field;
}

void put_cursor(const Frame& frame, std::size_t row, std::size_t column) {
  frame.commands.look([=](View& view) { view.selection.cursor = EditCursor{row, column}; });
}

void start_typing(const Frame& frame, std::string text, bool selected) {
  frame.commands.look([text = std::move(text), selected](View& view) {
    view.forms.typed = Typed{cell_field, text, true, selected};
  });
}

void edit_by_keys(const EditorFrame& e) {
  const ImGuiIO& io = ImGui::GetIO();
  const auto& cursor = *e.frame.newest.selection.cursor;
  if (is_typing_cell(e.frame.forms) || io.WantTextInput) return;
  if (cursor.row >= e.grid.n_rows || cursor.column >= e.grid.n_columns) return move(e, 0, 0);
  const long all = static_cast<long>(std::max(e.grid.n_rows, e.grid.n_columns));
  if (!e.frame.newest.selection.lesson) {  // whose steps they go through
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

void typing_field(const EditorFrame& e) {
  const auto& cursor = e.frame.newest.selection.cursor;
  if (!is_typing_cell(e.frame.forms) || !cursor || cursor->row >= e.grid.n_rows ||
      cursor->column >= e.grid.n_columns)
    return;
  const std::string text = e.frame.forms.typed->text;
  FieldStyle style;
  style.width = e.grid.cell_size().x, style.font = e.frame.fonts.mono14, style.alignment = Alignment::right;
  platform::move_to(e.grid.cell_min(cursor->row, cursor->column));
  const FieldAnswer answer = text_field(e.frame, cell_field, "", style);
  const bool escaped = key_pressed(ImGuiKey_Escape, false);
  const bool entered = key_pressed(ImGuiKey_Enter, false) || key_pressed(platform::keypad_enter, false);
  const bool up = key_pressed(ImGuiKey_UpArrow), down = key_pressed(ImGuiKey_DownArrow),
             tab = key_pressed(ImGuiKey_Tab);
  if (answer.left) {
    if (!escaped) commit(e, answer.text.value_or(text));
    if (entered) move(e, 1, 0);
  } else if (up || down || tab || (entered && e.frame.forms.typed->waiting)) {
    commit(e, text);
    e.frame.commands.look([](View& view) { view.forms.typed.reset(); });
  }
  if (tab) move_to_next(e, ImGui::GetIO().KeyShift);
  if (up || down || (entered && !answer.left)) move(e, up ? -1 : 1, 0);
}

}  // namespace app::widgets
