#pragma once

#include <armadillo>
#include <optional>

/// Small systems of equations, the same in every build: a page has no LAPACK.
namespace core {

/// Returns X with the least sum of squares of A·X − B, by Householder's QR decomposition; A: m × n, B: m × k,
/// X: n × k.
///
/// Nothing if A has fewer rows than columns or, to working precision, not n independent ones, and for numbers
/// that are not finite. Source: Golub and Van Loan, Matrix Computations, section 5.3.
std::optional<arma::mat> least_squares(arma::mat a, arma::mat b);

/// Returns the ratio of the largest to the smallest singular value, by one-sided Jacobi rotations; infinity
/// for dependent columns. Needs as many rows as columns.
double condition_number(arma::mat a);

}  // namespace core
