#include "core/formats/writers/matrix_formats.hpp"

#include <array>

#include "core/find.hpp"
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
  return find_by(matrix_format_table, name, &MatrixFormat::name);
}

}  // namespace core::formats
