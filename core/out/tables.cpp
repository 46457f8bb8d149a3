#include "core/out/tables.hpp"

#include <cmath>

#include "core/base/find.hpp"
#include "core/base/number.hpp"
#include "core/base/utf8.hpp"
#include "core/graph/python.hpp"
#include "core/out/numpy.hpp"

namespace core::formats {

namespace {

constexpr std::string_view line_end = "\r\n";

/// Returns whether a spreadsheet would run a label as a formula.
bool looks_like_formula(const std::string& label) {
  const std::size_t begin = label.find_first_not_of('\'');
  return begin != label.npos && std::string_view("=+-@\t\r").find(label[begin]) != std::string_view::npos;
}

void append_label(std::string& text, std::string label) {
  if (looks_like_formula(label)) label.insert(0, 1, '\'');
  // Spreadsheets may read semicolons and tabs as separators too.
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

constexpr std::array matrix_format_table{
    MatrixFormat{"csv", "text for spreadsheets, NumPy and pandas", csv_text},
    MatrixFormat{"npy", "NumPy's own file of one array, without labels",
                 [](const LabeledMatrix& m, bool) { return npy_bytes(m.numbers); }},
};

}  // namespace

std::string csv_text(const LabeledMatrix& matrix, bool labels) {
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

std::span<const MatrixFormat> matrix_formats() {
  return matrix_format_table;
}

const MatrixFormat* find_matrix_format(std::string_view name) {
  return find_by(matrix_format_table, name, &MatrixFormat::name);
}

namespace {

arma::mat numbers_of(const LabeledMatrix& m, const CopySelection& place) {
  switch (place.scope) {
    case CopyScope::matrix:
      return m.numbers;
    case CopyScope::row:
      return m.numbers.row(place.row);
    case CopyScope::number:
      break;
  }
  return m.numbers.submat(place.row, place.column, place.row, place.column);
}

/// Returns the part to copy, with its labels.
LabeledMatrix part_of(const LabeledMatrix& m, const CopySelection& place) {
  if (place.scope == CopyScope::matrix) return m;
  LabeledMatrix part{numbers_of(m, place), {m.row_labels.at(place.row)}, m.column_labels};
  if (place.scope == CopyScope::number) part.column_labels = {m.column_labels.at(place.column)};
  return part;
}

std::string tsv(const LabeledMatrix& m, CopySelection place, int) {
  const arma::mat numbers = numbers_of(m, place);
  std::string text;
  for (std::size_t i = 0; i < numbers.n_rows; ++i) {
    if (i > 0) text += '\n';
    for (std::size_t j = 0; j < numbers.n_cols; ++j) {
      if (j > 0) text += '\t';
      text::append_number(text, numbers(i, j));
    }
  }
  return text;
}

std::string csv(const LabeledMatrix& m, CopySelection place, int) {
  if (place.scope == CopyScope::number) return tsv(m, place, 0);
  return csv_text(part_of(m, place));
}

/// Escapes a label, so that it neither ends its table field or the line nor becomes a link, an image or a
/// tag.
std::string markdown_label(const std::string& label) {
  constexpr std::u32string_view marks = U"|\\`*_<>[]!&~";
  std::string text;
  for (const char32_t c : text::decode_utf8_lossy(label)) {
    if (marks.find(c) != marks.npos) text += '\\';
    text::append_character(text, text::is_control(c) ? U' ' : c);
  }
  return text;
}

std::string markdown(const LabeledMatrix& m, CopySelection place, int decimals) {
  const LabeledMatrix part = part_of(m, place);
  const auto number = [decimals](double v) {
    return std::isfinite(v) ? text::rounded(v, decimals) : text::fixed(v, decimals);
  };
  if (place.scope == CopyScope::number) return number(part.numbers(0, 0));
  std::string text = "|", rule = "\n|---|";
  for (const std::string& label : part.column_labels) text += " | " + markdown_label(label), rule += "---:|";
  text += " |" + rule;
  for (std::size_t i = 0; i < part.numbers.n_rows; ++i) {
    text += "\n| " + markdown_label(part.row_labels[i]);
    for (std::size_t j = 0; j < part.numbers.n_cols; ++j) text += " | " + number(part.numbers(i, j));
    text += " |";
  }
  return text + "\n";
}

/// Returns a matrix without labels, for a formula; needs amsmath.
std::string latex(const LabeledMatrix& m, CopySelection place, int decimals) {
  const auto number = [decimals](double v) {
    if (std::isnan(v)) return std::string("\\mathrm{NaN}");
    return std::isinf(v) ? std::string(v > 0 ? "\\infty" : "-\\infty") : text::rounded(v, decimals);
  };
  const arma::mat numbers = numbers_of(m, place);
  if (place.scope == CopyScope::number) return number(numbers(0, 0));
  std::string text = "\\begin{bmatrix}\n";
  for (std::size_t i = 0; i < numbers.n_rows; ++i) {
    text += "  ";
    for (std::size_t j = 0; j < numbers.n_cols; ++j) text += (j > 0 ? " & " : "") + number(numbers(i, j));
    text += i + 1 < numbers.n_rows ? " \\\\\n" : "\n";
  }
  return text + "\\end{bmatrix}\n";
}

std::string python_text(const LabeledMatrix& m, const CopySelection& place, const std::string& start,
                        const char* end) {
  const arma::mat numbers = numbers_of(m, place);
  if (place.scope == CopyScope::number) return python::number(numbers(0, 0));
  if (place.scope == CopyScope::row) return start + python::row(numbers) + end;
  return start + python::rows(numbers, std::string(start.size(), ' ')) + end + "\n";
}

std::string numpy(const LabeledMatrix& m, CopySelection place, int) {
  return python_text(m, place, "np.array(", ")");
}

std::string pytorch(const LabeledMatrix& m, CopySelection place, int) {
  return python_text(m, place, "torch.tensor(", ", dtype=torch.float64)");
}

}  // namespace

const std::array<CopyFormat, 6>& copy_formats() {
  static constexpr std::array forms{CopyFormat{"tsv", "TSV", false, tsv},
                                    CopyFormat{"csv", "CSV", false, csv},
                                    CopyFormat{"markdown", "Markdown", true, markdown},
                                    CopyFormat{"latex", "LaTeX", true, latex},
                                    CopyFormat{"numpy", "NumPy", false, numpy},
                                    CopyFormat{"pytorch", "PyTorch", false, pytorch}};
  return forms;
}

}  // namespace core::formats
