#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "core/out/labelled_matrix.hpp"

namespace core::formats {

/// What of a matrix is copied.
enum class CopyExtent { number, row, matrix };

/// The cell that it is copied for.
struct CopyPlace {
  CopyExtent extent = CopyExtent::matrix;
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
