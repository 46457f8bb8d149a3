#pragma once

#include <armadillo>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace core {

/// Whether two numbers are the same; NaN is the same as NaN.
inline bool are_same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

/// |a − b|, 0 … ∞: 0 between NaN and NaN, and between an infinity and itself; ∞ between NaN and a number.
inline double abs_difference(double a, double b) {
  if (are_same(a, b)) return 0;
  const double d = std::abs(a - b);
  return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
}

/// The largest |number| that is finite, 0 without any.
double largest_finite(const arma::mat& numbers);

}  // namespace core

namespace core::text {

/// The shortest decimal that reads back to the same double: "0.1", "-0", "1e+23", "-inf", "inf", "nan".
std::string number_text(double number);

/// The same for people: a number that float32 holds exactly is told by float32's own shortest decimal where
/// that is shorter: "0.15 (float32)", which is 0.15000000596046448.
std::string told_number(double number);

/// Appends number_text(number) without a string of its own; what long files are written with.
void append_number(std::string& text, double number);

/// The number that the whole of the text stands for, or nothing.
///
/// Decimals as number_text writes them, in any locale; no blanks, no leading plus, no hexadecimal; nothing
/// for numbers beyond the range of float64, 0 for those that are too small for it.
std::optional<double> parse_number(std::string_view text);

/// Whether the whole of a text is such a decimal, of a number too large for float64.
bool is_beyond_float64(std::string_view text);

/// The whole number from 0 to 2^64 - 1 that the whole of the text stands for, in digits alone, or nothing.
std::optional<std::uint64_t> parse_whole_number(std::string_view text);

/// The same of what the text begins with, which is taken off it; else the text stays.
std::optional<std::uint64_t> take_whole_number(std::string_view& text);

/// How the numbers of one matrix are written in its cells: one count of decimals for all of them.
struct NumberFormat {
  int decimals = 4;  ///< 0 … 4
  double unit = 1;   ///< as unit_for() has it
  bool fits = true;  ///< whether least_decimals fit, or as many as the numbers have; else none are drawn
  bool as_pytorch = false;  ///< "0.0000", "-0.4840", "-inf", as PyTorch prints a tensor
};

/// With fewer decimals than these a number is not worth its place, unless it has no more.
constexpr int least_decimals = 2;

/// What the numbers of one matrix take in cells.
struct NumberNeeds {
  double unit = 1;   ///< in which they are written, as unit_for() has it
  int whole = 1;     ///< characters of the widest before its point, with its minus
  int decimals = 0;  ///< as many as tell them, up to 4: zeros that all end in are left out
  int words = 0;     ///< characters of −∞ or NaN, where there are such cells
  bool as_pytorch = false;

  /// The same numbers with four decimals each, zeros too, as PyTorch prints a tensor.
  NumberNeeds printed_by_pytorch() const;
  /// Characters of the widest number with at most so many decimals.
  int characters(int max_decimals) const;
  /// The most decimals, up to a limit, with which the widest number takes at most max_characters.
  NumberFormat format(int max_characters, int max_decimals = 4) const;
};

/// Rows and columns of a matrix from the first to before the last.
struct CellRange {
  std::size_t row0 = 0, row1 = 0, column0 = 0, column1 = 0;
};

/// The unit of numbers whose largest size is that: 1, 0.001 below 0.01, or below 1e-5 the power of ten that
/// leaves one digit before the point.
double unit_for(double largest);

/// A unit in words: "0.001", "1e−7".
std::string unit_words(double unit);

/// What the finite numbers of the range take, in their own unit or in that of the whole matrix they are a
/// part of.
NumberNeeds needs_of(const arma::mat& numbers, CellRange range, std::optional<double> unit = std::nullopt);

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

/// A share of 0 … 1 with that many decimals, or a few more where it would look like 0 or 1 and is neither:
/// "0.99996"; "≈1" where no few tell.
std::string share_text(double share, int decimals);

/// With one decimal and a power of ten: "−1.2e+07".
std::string scientific(double value);

}  // namespace core::text
