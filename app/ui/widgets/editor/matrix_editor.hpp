#pragma once

#include <imgui.h>
#include <armadillo>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/theme/theme.hpp"
#include "app/ui/frame.hpp"
#include "core/files/tensor.hpp"

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

/// Where the cells of a matrix stand on the screen; only the visible ones need to be looked at.
struct MatrixGrid {
  struct Range {
    std::size_t first = 0, end = 0;
  };
  struct Cell {
    std::size_t row = 0, column = 0;
  };

  std::size_t n_rows = 0, n_columns = 0;
  ImVec2 origin;              ///< top left corner of everything, scrolled
  ImVec2 view_min, view_max;  ///< the part of the screen that can be seen
  float label_width = 0, header_height = 0, gap = 2;
  ImVec2 pitch;  ///< of the cells, their gaps included

  ImVec2 size() const;  ///< of everything, in pixels
  ImVec2 cell_min(std::size_t row, std::size_t column) const;
  ImVec2 cell_size() const { return {pitch.x - gap, pitch.y - gap}; }
  Range visible_rows() const;
  Range visible_columns() const;
  /// Row labels stay where they are when the columns scroll, column labels when the rows scroll.
  float label_left() const { return view_min.x; }
  float header_top() const { return view_min.y; }
  std::optional<Cell> cell_at(ImVec2 pos) const;
  /// The row whose label is at pos.
  std::optional<std::size_t> label_at(ImVec2 pos) const;
  /// How far the window must scroll, right and down, for a cell to be seen in full.
  ImVec2 scroll_to(std::size_t row, std::size_t column) const;
};

/// What the parts of the matrix editor share while one frame is drawn.
struct EditorFrame {
  const Frame& frame;
  const EditedMatrix& matrix;
  MatrixGrid grid;
};

/// The labels at the left; tokens can be renamed, dragged to another place, added and removed.
void row_labels(const EditorFrame& editor);

/// The matrix in a clipboard's text: a block of a spreadsheet, a table, or what PyTorch or NumPy printed.
///
/// Names of rows and columns are left out. Throws core::Error that names line and column, both from 1, of
/// what is no finite number, and of rows of unequal length.
arma::mat pasted_numbers(std::string_view text);

/// The same for any number of dimensions and any numbers, as a tensor.
core::formats::Tensor pasted_tensor(std::string_view text);

}  // namespace app::widgets
