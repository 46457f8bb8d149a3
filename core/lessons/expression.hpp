#pragma once

#include <armadillo>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// The small language of lessons: conditions, and texts with {expressions}.
///
///     not causal and weights[0, 0] < 1
///     The queries moved by at most {moved(queries)}.
///
/// A value is a number (0 is false), a text or a matrix. Names are those of subjects.cpp; `before.` asks for
/// the value at the start of a step, `weights@1` for head 1. Operators: or, and, not, == != < <= > >=, + - &
/// (joins texts), * /; comparisons and arithmetic of matrices go cell by cell. m[i, j] is a cell, v[i] an
/// element; -1 is the last; what is not there is NaN.
namespace core::lessons {

using Value = std::variant<double, std::string, arma::mat>;

/// A name in an expression and how it is asked for.
struct Query {
  std::string_view name;
  bool before = false;              ///< at the start of the step
  std::optional<std::size_t> head;  ///< else the first
  std::vector<Value> arguments;     ///< of a function of the lesson's subject
};

/// Answers names; nothing where it does not know one.
using Names = std::function<std::optional<Value>(const Query&)>;

/// Returns whether the expression holds. Throws core::Error, which quotes it, where it cannot be read.
bool holds(std::string_view expression, const Names& names);

/// Returns the text with the values of its {expressions}, numbers with at most four decimals. Throws as
/// holds().
std::string filled(std::string_view text, const Names& names);

// What lessons measure, and numbers in their words.

/// The number as prose has it: four decimals, fewer when they say it all, an exponent for small ones, "−" for
/// minus.
std::string number(double value);

/// "0.3, 0.7 and 1" of a column or a row of numbers.
std::string list(const arma::vec& numbers);

/// The largest |a − b|, cells left out in which either is not finite; infinity for different shapes.
double largest_difference(const arma::mat& a, const arma::mat& b);

/// The same for each row of a; infinity for different shapes.
arma::vec row_differences(const arma::mat& a, const arma::mat& b);

/// Whether the matrices are equal to rounding: within 1e-12.
bool agree(const arma::mat& a, const arma::mat& b);

/// One number of a matrix, NaN where it has none: what a lesson asks for must hold for any model.
double cell(const arma::mat& numbers, std::size_t row, std::size_t column);

/// The column of the largest number of a row; the number of columns when there is no such row.
std::size_t largest_in_row(const arma::mat& numbers, std::size_t row);

/// The largest number above the diagonal; 0 where there is none.
double largest_above_diagonal(const arma::mat& numbers);

/// The entropies of the rows in bits.
arma::vec entropies(const arma::mat& weights);

}  // namespace core::lessons
