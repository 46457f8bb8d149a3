#pragma once

#include <gtest/gtest.h>

#include <armadillo>

namespace support {

/// Returns whether every number is within its tolerance; ±∞ only equals itself and NaN is never right.
testing::AssertionResult is_near(const arma::mat& found, const arma::mat& expected, double absolute,
                                 double relative = 0);

}  // namespace support
