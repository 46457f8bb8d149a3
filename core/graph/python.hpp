#pragma once

#include <armadillo>
#include <string>
#include <vector>

/// Pieces of Python source, for programs that people read.
namespace core::formats::python {

/// Returns a Python float that reads back as the same float64: "0.5", "1.", "-0.", "float('nan')".
std::string number(double value);

/// Returns "[[0.5, 1.], [2., 3.]]", one row per line and long rows broken; lines after the first begin with
/// the indent.
///
/// With at_float32, the shortest decimals that read back as the same float32.
std::string rows(const arma::mat& matrix, const std::string& indent, bool at_float32 = false);

/// Returns the first row: "[0.5, 1.]".
std::string row(const arma::mat& matrix, bool at_float32 = false);

/// Returns whether every number survives rounding to float32, so that it can be written at that precision.
bool is_float32(const arma::mat& matrix);

/// Returns `"a"` as a literal of printable ASCII; bytes that are not UTF-8 become U+FFFD.
std::string string(const std::string& text);

/// Returns a line of the body of a method.
std::string line(const std::string& text);

/// Returns `["a", "b"]`, broken into lines.
std::string strings(const std::vector<std::string>& texts, const std::string& indent);

}  // namespace core::formats::python
