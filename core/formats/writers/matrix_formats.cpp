#include "core/formats/writers/matrix_formats.hpp"

#include <algorithm>
#include <array>

#include "core/formats/writers/csv.hpp"
#include "core/formats/writers/npy.hpp"

namespace core::formats {
namespace {

constexpr std::array matrix_format_table{
    MatrixFormat{"csv", "text for spreadsheets, NumPy and pandas", csv_text},
    MatrixFormat{"npy", "NumPy's own file of one array, without labels",
                 [](const LabelledMatrix& m, bool) { return npy_bytes(m.numbers); }},
};

}  // namespace

std::span<const MatrixFormat> matrix_formats() {
  return matrix_format_table;
}

const MatrixFormat* find_matrix_format(std::string_view name) {
  const auto row = std::find_if(matrix_format_table.begin(), matrix_format_table.end(),
                                [&](const MatrixFormat& f) { return name == f.name; });
  return row == matrix_format_table.end() ? nullptr : &*row;
}

}  // namespace core::formats
