#pragma once

#include <armadillo>
#include <optional>

namespace core::attention {

/// What numbers are rounded to; tf32 has the range of float32 and the digits of float16.
enum class Precision { float64, float32, float16, bfloat16, tf32 };

/// "float16", as PyTorch calls it.
const char* name_of(Precision precision);

/// How far rounding to a precision may take a number; not at all when it is not finite, or to float64.
double rounding_error(Precision precision, double number);

/// The nearest number of a precision, ties to even; too large ones become infinite, tiny ones subnormal.
double rounded(Precision precision, double number);

/// The same for every number of a matrix; float64 costs nothing.
arma::mat rounded(Precision precision, arma::mat numbers);

/// A number as float32 without all but its first 11 binary digits, cut off and not rounded; tiny ones stay.
double cut_to_tf32(double number);

/// a·b by a coarse processor: both rounded to the precision of factors; with sums each product and each
/// partial sum to theirs. The result is not rounded otherwise.
arma::mat coarse_product(arma::mat a, arma::mat b, Precision factors, std::optional<Precision> sums);

}  // namespace core::attention
