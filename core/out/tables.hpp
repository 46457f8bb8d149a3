#pragma once

#include <armadillo>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace core::formats {

/// A matrix and what its rows and columns stand for, ready to be written to a file.
struct LabelledMatrix {
  arma::mat numbers;
  std::vector<std::string> row_labels;     ///< n_rows
  std::vector<std::string> column_labels;  ///< n_cols
};

/// A matrix as CSV: a header of an empty field and the column labels, then a row label and numbers in each
/// row; the numbers alone when labels are not wanted.
///
/// Lines end with CR LF and labels are quoted where they must be. A label that a spreadsheet would take for a
/// formula (it begins with = + - @ or a tab) has "'" before it, which our own reader takes away. Source: RFC
/// 4180.
std::string csv_text(const LabelledMatrix& matrix, bool labels = true);

/// A format that a single matrix can be written in.
struct MatrixFormat {
  const char* name;   ///< as on the command line and as the ending of the file: "csv"
  const char* about;  ///< one line for people
  std::string (*bytes)(const LabelledMatrix&, bool labels);
};

/// All formats for a matrix; the first is the default.
std::span<const MatrixFormat> matrix_formats();

/// The format of that name, or nullptr.
const MatrixFormat* find_matrix_format(std::string_view name);

/// What of a matrix is copied.
enum class CopyScope { number, row, matrix };

/// The cell that it is copied for.
struct CopyPlace {
  CopyScope extent = CopyScope::matrix;
  std::size_t row = 0, column = 0;
};

/// A form in which numbers are put on the clipboard.
struct CopyForm {
  const char* name;     ///< "markdown"
  const char* title;    ///< "Markdown"
  bool takes_decimals;  ///< it is for people to read; all others have every digit
  std::string (*text)(const LabelledMatrix&, CopyPlace, int decimals);
};

/// TSV without labels, CSV with them, a Markdown table, LaTeX, NumPy, PyTorch.
const std::array<CopyForm, 6>& copy_forms();

}  // namespace core::formats
