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

/// Division of a matrix among heads: as many columns, or rows of W_o, for each.
struct HeadParts {
  std::size_t size = 0;      ///< of a part; 0: the matrix is not divided
  std::size_t selected = 0;  ///< the part of the displayed head
  bool of_rows = false;
};

/// A matrix of the model in the editor.
struct EditedMatrix {
  core::editing::MatrixRef place;
  const core::attention::SharedMatrix& numbers;
  const std::vector<std::string>* tokens = nullptr;  ///< names of the rows, editable
  std::vector<std::size_t> marked_rows;              ///< have a bar in the operand color
  const std::vector<std::string>* names = nullptr;   ///< read-only names of the rows, if there are no tokens
  HeadParts heads = {};
  const arma::mat* gradient = nullptr;  ///< of the numbers, below each cell; or nullptr
  double largest_gradient = 0;          ///< absolute value, the end of its colors
};

/// Returns the height of the whole editor without scrolling, in pixels.
float matrix_editor_height(const Frame& frame, const EditedMatrix& matrix, float width);

/// Returns that height, or if it exceeds the room, that of the whole rows that fit, at least one.
float matrix_editor_height(const Frame& frame, const EditedMatrix& matrix, ImVec2 room);

/// Draws a grid of numbers that can be dragged, typed, pasted and navigated; skips cells out of view.
///
/// Marks "edit/cell/<row>/<column>" and "edit/token/<row>". The cursor is Selection::cursor; a number being
/// typed is in Forms::typed.
void matrix_editor(const Frame& frame, const EditedMatrix& matrix, ImVec2 size);

/// Screen layout of the cells of a matrix, with the range of visible ones.
struct MatrixGrid {
  struct GridRange {
    std::size_t first = 0, end = 0;
  };
  struct GridCell {
    std::size_t row = 0, column = 0;
  };

  std::size_t n_rows = 0, n_columns = 0;
  ImVec2 origin;              ///< top left corner of the whole grid, after scrolling
  ImVec2 view_min, view_max;  ///< visible rectangle on the screen
  float label_width = 0, header_height = 0, gap = 2;
  ImVec2 pitch;     ///< size of a cell with its gap and strip
  float strip = 0;  ///< height below a cell, for its gradient

  ImVec2 size() const;  ///< of the whole grid, in pixels
  ImVec2 cell_min(std::size_t row, std::size_t column) const;
  ImVec2 cell_size() const { return {pitch.x - gap, pitch.y - gap - strip}; }
  GridRange visible_rows() const;
  GridRange visible_columns() const;
  /// Row labels do not scroll with the columns, nor column labels with the rows.
  float label_left() const { return view_min.x; }
  float header_top() const { return view_min.y; }
  std::optional<GridCell> cell_at(ImVec2 pos) const;
  /// Returns the row whose label is at pos.
  std::optional<std::size_t> label_at(ImVec2 pos) const;
  /// Returns how far to scroll right and down, in pixels, to show the whole cell.
  ImVec2 scroll_to(std::size_t row, std::size_t column) const;
};

/// State shared by the parts of the matrix editor during one frame.
struct EditorFrame {
  const Frame& frame;
  const EditedMatrix& matrix;
  MatrixGrid grid;
};

/// Draws the labels at the left; tokens can be renamed, moved by dragging, added and removed.
void row_labels(const EditorFrame& editor);

/// Returns the matrix in a clipboard's text: a spreadsheet block, a table, or output of PyTorch or NumPy.
///
/// Skips names of rows and columns. Throws core::Error that names line and column, both from 1, for an entry
/// that is not a finite number and for rows of unequal length.
arma::mat parse_pasted_matrix(std::string_view text);

/// Returns such a text as a tensor of any number of dimensions; numbers need not be finite.
core::formats::Tensor parse_pasted_tensor(std::string_view text);

}  // namespace app::widgets
