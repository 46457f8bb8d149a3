#include "core/out/npy.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/temporary_directory.hpp"

namespace core::formats {
namespace {

TEST(NpyBytes, AreThoseThatNumPyWrites) {
  const arma::mat numbers{{1.5, -0.0, -INFINITY}, {0.1, 1e300, 5e-324}};  // as make_sessions.py saves them
  EXPECT_EQ(npy_bytes(numbers), support::bytes_of(FIXTURES "/formats/two_by_three.npy"));
}

TEST(NpyBytes, PutTheFirstNumberOnAMultipleOf64) {
  const std::string bytes = npy_bytes(arma::mat(1234567, 1, arma::fill::zeros));
  EXPECT_EQ((bytes.size() - 1234567 * sizeof(double)) % 64, 0u);
}

}  // namespace
}  // namespace core::formats
