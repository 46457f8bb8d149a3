#include "core/formats/writers/csv.hpp"

#include <string_view>

#include "core/text/number.hpp"

namespace core::formats {
namespace {

constexpr std::string_view line_end = "\r\n";

void append_label(std::string& text, const std::string& label) {
  if (label.find_first_of(",\"\r\n") == label.npos) {
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
