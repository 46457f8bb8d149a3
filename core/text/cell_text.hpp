#pragma once

#include <armadillo>
#include <optional>
#include <string>

namespace core::text {

/// How the numbers of one matrix are written in its cells: one count of decimals for all of them.
struct NumberFormat {
  int decimals = 4;  ///< 0 … 4
  double unit = 1;   ///< 1, or 0.001 when the largest number is below 0.01
  bool fits = true;  ///< whether one decimal fits at all; else no numbers are drawn
};

/// Rows and columns of a matrix from the first to before the last.
struct CellRange {
  std::size_t row0 = 0, row1 = 0, column0 = 0, column1 = 0;
};

/// The unit of numbers whose largest size is that: 1, or 0.001 below 0.01.
double unit_for(double largest);

/// The most decimals, up to 4, with which the widest number of the range takes at most max_characters; in
/// their own unit, or in that of the whole matrix they are a part of.
NumberFormat choose_format(const arma::mat& numbers, CellRange range, int max_characters,
                           std::optional<double> unit = std::nullopt);

/// A number as it stands in a cell: "0.484", "−∞", "NaN"; an exact zero is "0", a whole 1 is "1" when
/// plain_one.
std::string cell_text(double value, const NumberFormat& format, bool plain_one);

/// A finite number with a fixed count of decimals, in ASCII and never "-0".
std::string rounded(double value, int decimals);

/// Any number with a fixed count of decimals and U+2212 as minus: "−0.484", "∞", "NaN".
std::string fixed(double value, int decimals);

/// With one decimal and a power of ten: "−1.2e+07".
std::string scientific(double value);

}  // namespace core::text
