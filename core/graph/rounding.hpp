#pragma once

#include <armadillo>
#include <cstdint>
#include <optional>

namespace core::attention {

/// Precision of rounding; tf32 has the range of float32 and the digits of float16.
enum class Precision { float64, float32, float16, bfloat16, tf32 };

/// Returns PyTorch's name: "float16".
const char* name_of(Precision precision);

/// Returns the largest error of rounding a number; 0 if it is not finite, or for float64.
double rounding_error(Precision precision, double number);

/// Returns the nearest number of a precision, ties to even; overflow is infinite, tiny ones are subnormal.
double rounded(Precision precision, double number);

/// Returns the next number of a precision above or below, by 64 random bits, so that the mean is the number.
double randomly_rounded(Precision precision, double number, std::uint64_t random);

/// Rounds every number of a matrix; float64 costs nothing.
arma::mat rounded(Precision precision, arma::mat numbers);

/// Returns a number as float32 truncated, not rounded, to 11 binary digits; tiny ones stay.
double truncate_to_tf32(double number);

/// Returns a·b at reduced precision: both rounded to `factors`; with `sums`, each product and each partial
/// sum rounded to it. The result is not rounded otherwise.
arma::mat reduced_precision_product(arma::mat a, arma::mat b, Precision factors,
                                    std::optional<Precision> sums);

}  // namespace core::attention
