#include "core/out/matrix_formats.hpp"

#include <array>

#include "core/base/find.hpp"
#include "core/out/csv.hpp"
#include "core/out/npy.hpp"

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
