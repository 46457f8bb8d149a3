#pragma once

#include <armadillo>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace core::formats {

/// A matrix with labels of its rows and columns, for a file.
struct LabeledMatrix {
  arma::mat numbers;
  std::vector<std::string> row_labels;     ///< n_rows
  std::vector<std::string> column_labels;  ///< n_cols
};

/// Returns a matrix as CSV: a header of an empty field and the column labels, then a row label and numbers in
/// each row; only the numbers if labels is false.
///
/// Lines end with CR LF and labels are quoted where needed. A label that a spreadsheet would run as a formula
/// (it begins with = + - @, tab or CR) gets a leading "'", which our own reader removes. Source: RFC 4180.
std::string csv_text(const LabeledMatrix& matrix, bool labels = true);

/// A file format for a single matrix.
struct MatrixFormat {
  const char* name;   ///< on the command line, and the file extension: "csv"
  const char* about;  ///< one-line description
  std::string (*bytes)(const LabeledMatrix&, bool labels);
};

/// Returns all formats for a matrix; the first is the default.
std::span<const MatrixFormat> matrix_formats();

/// Returns the format of this name, or nullptr.
const MatrixFormat* find_matrix_format(std::string_view name);

/// Part of a matrix to copy.
enum class CopyScope { number, row, matrix };

/// Part of a matrix to copy, and its cell.
struct CopySelection {
  CopyScope scope = CopyScope::matrix;
  std::size_t row = 0, column = 0;
};

/// A text format for numbers on the clipboard.
struct CopyFormat {
  const char* name;     ///< "markdown"
  const char* title;    ///< "Markdown"
  bool takes_decimals;  ///< rounded, for reading; all others have every digit
  std::string (*text)(const LabeledMatrix&, CopySelection, int decimals);
};

/// Returns TSV without labels, CSV with labels, a Markdown table, LaTeX, NumPy and PyTorch.
const std::array<CopyFormat, 6>& copy_formats();

}  // namespace core::formats
