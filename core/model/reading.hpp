#pragma once

#include <armadillo>
#include <string>

#include "core/files/tensor_file.hpp"

namespace core::transformer {

/// Rows first … first + count − 1 of a tensor [rows, columns] as float32: columns × count, as they lie in the
/// file. A tensor of one axis is one row. Throws core::Error as TensorFile::read() does.
arma::fmat read_rows(const formats::TensorFile& file, const std::string& name, std::size_t first,
                     std::size_t count, const Token& progress);

/// All rows.
arma::fmat read_floats(const formats::TensorFile& file, const std::string& name, const Token& progress);

}  // namespace core::transformer
