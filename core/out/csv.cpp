#include "core/out/csv.hpp"

#include <string_view>

#include "core/base/number.hpp"

namespace core::formats {
namespace {

constexpr std::string_view line_end = "\r\n";

/// What begins so is a formula to a spreadsheet, which runs it.
bool looks_like_formula(const std::string& label) {
  const std::size_t begin = label.find_first_not_of('\'');
  return begin != label.npos && std::string_view("=+-@\t\r").find(label[begin]) != std::string_view::npos;
}

void append_label(std::string& text, std::string label) {
  if (looks_like_formula(label)) label.insert(0, 1, '\'');
  // Spreadsheets may take semicolons and tabs for separators too.
  if (label.find_first_of(",;\t\"\r\n") == label.npos) {
    text += label;
    return;
  }
  text += '"';
  for (const char c : label) {
    if (c == '"') text += '"';
    text += c;
  }
  text += '"';
}

}  // namespace

std::string csv_text(const LabelledMatrix& matrix, bool labels) {
  const arma::mat& m = matrix.numbers;
  std::string text;
  if (labels) {
    for (const std::string& label : matrix.column_labels) append_label(text += ',', label);
    text += line_end;
  }
  for (std::size_t i = 0; i < m.n_rows; ++i) {
    if (labels) append_label(text, matrix.row_labels[i]);
    for (std::size_t j = 0; j < m.n_cols; ++j) {
      if (labels || j > 0) text += ',';
      text::append_number(text, m(i, j));
    }
    text += line_end;
  }
  return text;
}

}  // namespace core::formats
