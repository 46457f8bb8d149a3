#pragma once

#include <armadillo>
#include <cstddef>

namespace core::compare {

/// Ways to show how far a number of A is from the number of B in the same place.
enum class DifferenceKind {
  a_minus_b,
  absolute,  ///< |a − b|
  relative   ///< (a − b) / max(|a|, |b|), −2 … 2 for finite numbers; never divided by zero
};

/// One number of A against one of B.
///
/// Equal numbers give 0, and so do −∞ against −∞, ∞ against ∞ and NaN against NaN, which subtraction alone
/// would call NaN. An infinity against a number or the other infinity stays infinite, NaN against anything
/// else is NaN.
double difference(DifferenceKind kind, double a, double b);

/// The same cell by cell: both and the result are n × m. Throws core::Error when the shapes differ.
arma::mat difference(DifferenceKind kind, const arma::mat& a, const arma::mat& b);

/// The cell in which two matrices are farthest apart.
struct Farthest {
  double distance = 0;  ///< 0 … ∞
  std::size_t row = 0, column = 0;
};

/// The largest |a − b| of two n × m matrices and the first cell, row by row, that has it.
///
/// A number against NaN or an infinity is infinitely far; NaN and NaN are equal, and so are equal infinities.
/// Throws core::Error when the shapes differ.
Farthest farthest(const arma::mat& a, const arma::mat& b);

}  // namespace core::compare
