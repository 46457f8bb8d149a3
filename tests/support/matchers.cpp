#include "tests/support/matchers.hpp"

#include <cmath>

namespace support {

testing::AssertionResult is_near(const arma::mat& found, const arma::mat& expected, double absolute,
                                 double relative) {
  if (arma::size(found) != arma::size(expected))
    return testing::AssertionFailure() << "is " << found.n_rows << "×" << found.n_cols << ", expected "
                                       << expected.n_rows << "×" << expected.n_cols;
  for (std::size_t i = 0; i < expected.n_rows; ++i)
    for (std::size_t j = 0; j < expected.n_cols; ++j) {
      const double f = found(i, j), e = expected(i, j);
      const bool right = std::isinf(e) ? f == e : std::fabs(f - e) <= absolute + relative * std::fabs(e);
      if (!right)
        return testing::AssertionFailure() << "[" << i << "][" << j << "] is " << testing::PrintToString(f)
                                           << ", expected " << testing::PrintToString(e);
    }
  return testing::AssertionSuccess();
}

}  // namespace support
