#pragma once

#include <gtest/gtest.h>

#include <armadillo>

namespace support {

/// Whether every number is within its tolerance; minus infinity only equals itself and a NaN is never right.
testing::AssertionResult is_near(const arma::mat& found, const arma::mat& expected, double absolute,
                                 double relative = 0);

}  // namespace support
