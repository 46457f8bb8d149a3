#pragma once

#include <armadillo>
#include <string>
#include <vector>

namespace core::formats {

/// A matrix as a .npy file of version 1.0: little-endian float64, shape (n_rows, n_cols), row after row.
///
/// Source: NumPy, numpy.lib.format.
std::string npy_bytes(const arma::mat& matrix);

/// What stands before the numbers of a .npy file of that shape; append_rows() adds them.
std::string npy_header(const std::vector<std::size_t>& shape);

/// Appends a matrix row after row, as little-endian float64.
void append_rows(std::string& bytes, const arma::mat& matrix);

}  // namespace core::formats
