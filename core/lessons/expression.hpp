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
/// A value is a number (0 is false), a text or a matrix. Names are those of subjects.cpp; `before.` selects
/// the value at the start of a step, `weights@1` that of head 1. Operators: or, and, not, == != < <= > >=,
/// + - & (joins texts), * /; comparisons and arithmetic of matrices are elementwise. m[i, j] is a cell,
/// v[i] an element; -1 is the last; a missing one is NaN.
namespace core::lessons {

using LessonValue = std::variant<double, std::string, arma::mat>;

/// A name in an expression, with its head and arguments.
struct NameReference {
  std::string_view name;
  bool before = false;                 ///< at the start of the step
  std::optional<std::size_t> head;     ///< if empty, the first
  std::vector<LessonValue> arguments;  ///< of a function of the lesson's subject
};

/// Returns the value of a name, or nothing for an unknown one.
using NameResolver = std::function<std::optional<LessonValue>(const NameReference&)>;

/// Returns a number of an expression as an index, beyond every list where it is none.
std::size_t index_of(double number);

/// Returns whether the expression holds. Throws core::Error, which quotes it, when it is invalid, or longer
/// or deeper than any that a person writes: it may come from a stranger.
bool holds(std::string_view expression, const NameResolver& names);

/// Returns the text with the values of its {expressions}, numbers with at most four decimals. Throws as
/// holds().
std::string interpolate(std::string_view text, const NameResolver& names);

// Measures that lessons use, and numbers as text.

/// Returns the number as in prose: four decimals, fewer when they are exact, an exponent for small numbers,
/// "−" for minus.
std::string number(double value);

/// Returns "0.3, 0.7 and 1" for a column or a row of numbers.
std::string list(const arma::vec& numbers);

/// Returns the largest |a − b| over cells where it is finite; infinity for different shapes.
double largest_difference(const arma::mat& a, const arma::mat& b);

/// Returns the same for each row of a; infinity for different shapes.
arma::vec row_differences(const arma::mat& a, const arma::mat& b);

/// Returns whether the matrices are finite and equal within 1e-12.
bool agree(const arma::mat& a, const arma::mat& b);

/// Returns one number of a matrix, or NaN if it has none there, as a lesson must hold for any model.
double cell(const arma::mat& numbers, std::size_t row, std::size_t column);

/// Returns the column of the largest number of a row; the number of columns when there is no such row.
std::size_t largest_in_row(const arma::mat& numbers, std::size_t row);

/// Returns the largest number above the diagonal; 0 if there is none.
double largest_above_diagonal(const arma::mat& numbers);

/// Returns the entropies of the rows in bits.
arma::vec entropies(const arma::mat& weights);

}  // namespace core::lessons
