#pragma once

#include <armadillo>

#include "core/attention/departures.hpp"

namespace core::attention {

/// "float16", as PyTorch calls it.
const char* name_of(Precision precision);

/// How many binary digits the numbers of a precision have: 53, 24, 11 or 8.
int digits_of(Precision precision);

/// The nearest number of a precision, ties to even; too large ones become infinite, tiny ones subnormal.
double rounded(Precision precision, double number);

/// The same for every number of a matrix; float64 costs nothing.
arma::mat rounded(Precision precision, arma::mat numbers);

}  // namespace core::attention
