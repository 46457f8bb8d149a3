#pragma once

#include <string>

#include "core/out/labelled_matrix.hpp"

namespace core::formats {

/// A matrix as CSV: a header of an empty field and the column labels, then a row label and numbers in each
/// row; the numbers alone when labels are not wanted.
///
/// Lines end with CR LF and labels are quoted where they must be. A label that a spreadsheet would take for a
/// formula (it begins with = + - @ or a tab) has "'" before it, which our own reader takes away. Source: RFC
/// 4180.
std::string csv_text(const LabelledMatrix& matrix, bool labels = true);

}  // namespace core::formats
