#pragma once

#include <armadillo>
#include <cstddef>

namespace core::compare {

/// Ways to compare a number of A with the number of B at the same place.
enum class DifferenceKind {
  a_minus_b,
  absolute,  ///< |a − b|
  relative   ///< (a − b) / max(|a|, |b|), −2 … 2 for finite numbers; never divided by zero
};

/// Returns the difference between one number of A and one of B.
///
/// Equal numbers give 0, including −∞ and −∞, ∞ and ∞, NaN and NaN, which subtraction would turn into NaN. An
/// infinity with a finite number or the opposite infinity stays infinite; NaN with anything else is NaN.
double difference(DifferenceKind kind, double a, double b);

/// Does the same cell by cell: both and the result are n × m. Throws core::Error if the shapes differ.
arma::mat difference(DifferenceKind kind, const arma::mat& a, const arma::mat& b);

/// Cell in which two matrices differ most.
struct MaxDifference {
  double distance = 0;  ///< 0 … ∞
  std::size_t row = 0, column = 0;
};

/// Returns the largest |a − b| of two n × m matrices and the first cell, row by row, that has it.
///
/// A number is infinitely far from NaN or an infinity; two NaN are equal, and so are equal infinities. Throws
/// core::Error if the shapes differ.
MaxDifference max_difference(const arma::mat& a, const arma::mat& b);

}  // namespace core::compare
