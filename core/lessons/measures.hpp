#pragma once

#include <armadillo>
#include <cstddef>
#include <string>

/// What lessons measure, and numbers in their words.
namespace core::lessons {

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
