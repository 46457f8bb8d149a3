#pragma once

#include <armadillo>
#include <string>
#include <vector>

namespace core::formats {

/// A matrix as a .npy file of version 1.0: little-endian float64, shape (n_rows, n_cols), row after row.
///
/// Source: NumPy, numpy.lib.format.
std::string npy_bytes(const arma::mat& matrix);

/// What stands before the numbers of a .npy file of that shape; append_rows() adds them. type is NumPy's word
/// for what they are.
std::string npy_header(const std::vector<std::size_t>& shape, const std::string& type = "<f8");

/// Appends a matrix row after row, as little-endian float64.
void append_rows(std::string& bytes, const arma::mat& matrix);

/// Words in UTF-8 as a .npy file of that shape, as NumPy keeps text: UTF-32, all of the longest one's length.
/// Bytes that are not UTF-8 become U+FFFD.
std::string npy_words(const std::vector<std::string>& words, const std::vector<std::size_t>& shape);

}  // namespace core::formats
