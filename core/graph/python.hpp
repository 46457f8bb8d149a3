#pragma once

#include <armadillo>
#include <string>
#include <vector>

/// Pieces of Python source, for programs that people read.
namespace core::formats::python {

/// A number that reads back to the same float64 and is a float in Python: "0.5", "1.", "-0.", "float('nan')".
std::string number(double value);

/// "[[0.5, 1.], [2., 3.]]", a row a line after the first and long rows broken; later lines begin with the
/// indent.
///
/// With at_float32, the shortest decimals that read back to the same float32.
std::string rows(const arma::mat& matrix, const std::string& indent, bool at_float32 = false);

/// "[0.5, 1.]": the first row.
std::string row(const arma::mat& matrix, bool at_float32 = false);

/// Whether every number survives being rounded to float32, so that it can be written at that precision.
bool is_float32(const arma::mat& matrix);

/// `"a"` as a literal of printable ASCII; bytes that are not UTF-8 become U+FFFD.
std::string string(const std::string& text);

/// A line of the body of a method.
std::string line(const std::string& text);

/// `["a", "b"]`, broken into lines.
std::string strings(const std::vector<std::string>& texts, const std::string& indent);

}  // namespace core::formats::python
