#pragma once

#include <armadillo>
#include <cstddef>
#include <string>
#include <vector>

/// What lessons measure, and numbers in their words.
namespace core::lessons {

/// The number as prose has it: four decimals, fewer when they say it all, an exponent for small ones, "−" for
/// minus.
std::string number(double value);

/// "0.3, 0.7 and 1" of a column or a row of numbers.
std::string list(const arma::vec& numbers);

/// The largest |a − b|, cells left out in which either is not finite; infinity for different shapes.
double largest_difference(const arma::mat& a, const arma::mat& b);

/// The same for each row.
arma::vec row_differences(const arma::mat& a, const arma::mat& b);

/// Whether the matrices are equal to rounding: within 1e-12.
bool agree(const arma::mat& a, const arma::mat& b);

/// The column of the largest number of a row.
std::size_t largest_in_row(const arma::mat& numbers, std::size_t row);

/// The entropies of the rows in bits.
arma::vec entropies(const arma::mat& weights);

}  // namespace core::lessons
