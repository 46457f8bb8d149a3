#include <cmath>

#include "core/base/text.hpp"
#include "core/editing/edit_cases.hpp"

namespace core::editing {
namespace {

using attention::SharedMatrix;
using std::to_string;

std::string path(const attention::Model& model, MatrixPlace place) {
  const bool is_batch =
      place.name <= MatrixName::key_embeddings && (model.sequences.size() > 1 || place.nth > 0);
  const bool of_head = place.name == MatrixName::score_bias && model.additions.score_bias.size() > 1;
  return path_of(place.name) + (is_batch || of_head ? "[" + to_string(place.nth) + "]" : "");
}

std::string cell_path(const std::string& matrix, std::size_t row, std::size_t column) {
  return matrix + "[" + to_string(row) + "][" + to_string(column) + "]";
}

SharedMatrix& matrix_to_edit(attention::Model& model, MatrixPlace place) {
  SharedMatrix* found = find_matrix(model, place);
  if (!found) cases::refuse(path(model, place), "the model has no such matrix");
  return *found;
}

/// Throws unless a block of that many rows and columns fits at (row, column).
void require_fit(const std::string& matrix, const SharedMatrix& m, std::size_t row, std::size_t column,
                 std::size_t n_rows, std::size_t n_columns) {
  if (row <= m.n_rows() && n_rows <= m.n_rows() - row && column <= m.n_cols() &&
      n_columns <= m.n_cols() - column)
    return;
  cases::refuse(cell_path(matrix, row, column), text::shape_text(n_rows, n_columns) +
                                                    " numbers do not fit there, the matrix is " +
                                                    text::shape_text(m.n_rows(), m.n_cols()));
}

void require_finite(const std::string& matrix, std::size_t row, std::size_t column, double value) {
  if (!std::isfinite(value)) cases::refuse(cell_path(matrix, row, column), "expected a finite number");
}

}  // namespace

namespace cases {

void change(Model& model, const SetCell& edit) {
  SharedMatrix& m = matrix_to_edit(model, edit.place);
  const std::string matrix = path(model, edit.place);
  require_fit(matrix, m, edit.row, edit.column, 1, 1);
  require_finite(matrix, edit.row, edit.column, edit.value);
  if (!attention::same_bits(m.at(edit.row, edit.column), edit.value))
    m.set(edit.row, edit.column, edit.value);
}

void change(Model& model, const SetBlock& edit) {
  SharedMatrix& m = matrix_to_edit(model, edit.place);
  const std::string matrix = path(model, edit.place);
  const arma::mat& block = edit.values;
  require_fit(matrix, m, edit.row, edit.column, block.n_rows, block.n_cols);
  for (std::size_t i = 0; i < block.n_rows; ++i)
    for (std::size_t j = 0; j < block.n_cols; ++j)
      require_finite(matrix, edit.row + i, edit.column + j, block(i, j));
  if (!block.is_empty()) m.edit().submat(edit.row, edit.column, arma::size(block)) = block;
}

}  // namespace cases
}  // namespace core::editing
