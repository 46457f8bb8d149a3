#pragma once

#include <armadillo>
#include <string>

namespace core::formats {

/// A matrix as a .npy file of version 1.0: little-endian float64, shape (n_rows, n_cols), row after row.
///
/// Source: NumPy, numpy.lib.format.
std::string npy_bytes(const arma::mat& matrix);

}  // namespace core::formats
