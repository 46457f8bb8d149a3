#pragma once

#include <armadillo>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace core {

/// Returns whether two numbers are equal; NaN equals NaN.
inline bool equal_or_both_nan(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

/// Returns |a − b|, 0 … ∞: 0 for two NaN or equal infinities; ∞ between NaN and a number.
inline double abs_difference(double a, double b) {
  if (equal_or_both_nan(a, b)) return 0;
  const double d = std::abs(a - b);
  return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
}

/// Returns the largest finite magnitude, 0 if there is none.
double max_abs_finite(const arma::mat& numbers);

}  // namespace core

namespace core::text {

/// Returns the shortest decimal that reads back the same: "0.1", "-0", "1e+23", "-inf", "inf", "nan".
std::string number_text(double number);

/// Returns the same for display: a number that float32 holds exactly is shown as float32's shortest decimal
/// if that is shorter: "0.15 (float32)" for 0.15000000596046448.
std::string display_number(double number);

/// Appends number_text(number) without a temporary string, for long files.
void append_number(std::string& text, double number);

/// Returns the number that the whole text represents, or nothing.
///
/// Reads decimals as number_text() writes them, in any locale; no spaces, no leading plus, no hexadecimal.
/// Returns nothing for numbers beyond the range of float64, 0 for those too small for it.
std::optional<double> parse_number(std::string_view text);

/// Returns whether the whole text is such a decimal, but too large for float64.
bool is_beyond_float64(std::string_view text);

/// Returns the integer from 0 to 2^64 - 1 that the whole text represents, in digits only, or nothing.
std::optional<std::uint64_t> parse_unsigned(std::string_view text);

/// Reads such an integer at the start of the text and removes it; without one the text is unchanged.
std::optional<std::uint64_t> consume_unsigned(std::string_view& text);

/// Format of the numbers in the cells of one matrix: all have the same number of decimals.
struct NumberFormat {
  int decimals = 4;  ///< 0 … 4
  double unit = 1;   ///< see unit_for()
  bool fits = true;  ///< whether min_decimals fit, or all decimals if there are fewer; else none are drawn
  bool as_pytorch = false;  ///< "0.0000", "-0.4840", "-inf", as PyTorch prints a tensor
};

/// Fewest decimals worth showing, unless the number has fewer.
constexpr int min_decimals = 2;

/// Space that the numbers of one matrix need in cells.
struct NumberExtents {
  double unit = 1;   ///< in which they are written, see unit_for()
  int whole = 1;     ///< most characters before the dot, minus included
  int decimals = 0;  ///< up to 4, without zeros that all numbers end in
  int words = 0;     ///< characters of −∞ or NaN, if there are such cells
  bool as_pytorch = false;

  /// Returns the needs with four decimals each, zeros too, as PyTorch prints a tensor.
  NumberExtents in_pytorch_style() const;
  /// Returns the characters of the widest number with at most max_decimals decimals.
  int characters(int max_decimals) const;
  /// Returns the format with the most decimals, up to max_decimals, that fits into max_characters.
  NumberFormat format(int max_characters, int max_decimals = 4) const;
};

/// Rows and columns of a matrix, half-open.
struct CellRange {
  std::size_t row0 = 0, row1 = 0, column0 = 0, column1 = 0;
};

/// Returns the unit for numbers of that largest magnitude: 1, 0.001 if below `below`, or below 1e-5 the power
/// of ten that leaves one digit before the dot.
double unit_for(double largest, double below = 0.01);

/// Returns a unit as text: "0.001", "1e−7".
std::string unit_text(double unit);

/// Returns the space that the numbers of the range need, in their own unit or in that of the whole matrix.
NumberExtents measure_numbers(const arma::mat& numbers, CellRange range,
                              std::optional<double> unit = std::nullopt);

/// Returns the format with the most decimals, up to 4, in which the widest number of the range takes at most
/// max_characters; in their own unit or in that of the whole matrix.
NumberFormat choose_format(const arma::mat& numbers, CellRange range, int max_characters,
                           std::optional<double> unit = std::nullopt);

/// Returns a number as shown in a cell: "0.484", "−∞", "NaN"; an exact zero is "0", and an exact 1 is "1" if
/// plain_one.
std::string cell_text(double value, const NumberFormat& format, bool plain_one);

/// Returns a finite number with a fixed number of decimals, in ASCII and never "-0".
std::string rounded(double value, int decimals);

/// Returns any number with a fixed number of decimals and U+2212 as minus: "−0.484", "∞", "NaN".
std::string fixed(double value, int decimals);

/// Returns a share of 0 … 1 with that many decimals, or up to two more where it would look like 0 or 1:
/// "0.99996"; "≈0" or "≈1" if those do not suffice.
std::string fraction_text(double share, int decimals);

/// Returns a number with one decimal and a power of ten: "−1.2e+07".
std::string scientific(double value);

}  // namespace core::text
