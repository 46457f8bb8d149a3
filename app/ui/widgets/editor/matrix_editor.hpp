#pragma once

#include <string>
#include <vector>

#include "app/ui/frame.hpp"

namespace app::widgets {

/// A matrix of the model that is to be edited.
struct EditedMatrix {
  core::editing::MatrixPlace place;
  const core::attention::SharedMatrix& numbers;
  const std::vector<std::string>* tokens = nullptr;  ///< names of the rows that can be edited too
  std::vector<std::size_t> marked_rows;              ///< bear a bar in the operand's color
  const std::vector<std::string>* names = nullptr;  ///< of rows that are only read, where there are no tokens
};

/// The height of the whole editor without scrolling, in pixels.
float matrix_editor_height(const Frame& frame, const EditedMatrix& matrix, float width);
/// The same where it may be higher than the room: that of as many whole rows as the room takes, at least one.
float matrix_editor_height(const Frame& frame, const EditedMatrix& matrix, ImVec2 room);

/// A grid of numbers to drag, type, paste and walk through; only the visible cells are drawn.
///
/// Marks "edit/cell/<row>/<column>" and "edit/token/<row>". The cursor is View::cursor, a number being typed
/// View::typed.
void matrix_editor(const Frame& frame, const EditedMatrix& matrix, ImVec2 size);

}  // namespace app::widgets
