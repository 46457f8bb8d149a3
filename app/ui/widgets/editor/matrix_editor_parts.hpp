#pragma once

#include "app/ui/widgets/editor/matrix_editor.hpp"
#include "app/ui/widgets/editor/matrix_grid.hpp"

namespace app::widgets {

/// What the parts of the matrix editor share while one frame is drawn.
struct EditorFrame {
  const Frame& frame;
  const EditedMatrix& matrix;
  MatrixGrid grid;
};

/// The name of the field in which a cell's number is typed.
inline constexpr const char* cell_field = "edit/typing";

bool is_typing_cell(const Forms& forms);
/// Puts the cursor on a cell.
void put_cursor(const Frame& frame, std::size_t row, std::size_t column);
/// Starts typing at the cursor; selected: the first letter replaces the text.
void start_typing(const Frame& frame, std::string text, bool selected);

/// Walks, deletes, pastes and starts typing; the editor has the keyboard.
void edit_by_keys(const EditorFrame& editor);
/// The field over the cursor's cell while a number is typed.
void typing_field(const EditorFrame& editor);
/// The labels at the left; tokens can be renamed, dragged to another place, added and removed.
void row_labels(const EditorFrame& editor);

}  // namespace app::widgets
