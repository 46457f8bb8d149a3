#include "app/session/picture_source.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(ValueRange, IsFoundWhereverItsEndsStand) {
  for (const arma::uword n : {1u, 7u, 8u, 9u, 21u}) {
    for (arma::uword at = 0; at < n; ++at) {
      arma::mat m(n, 1, arma::fill::value(2.0));
      m(at) = -3;
      EXPECT_EQ(app::value_range(m).smallest, -3) << n << " " << at;
      EXPECT_EQ(app::value_range(m).least, n == 1 ? 3 : 2) << n << " " << at;
      m(at) = 5;
      EXPECT_EQ(app::value_range(m).largest, 5) << n << " " << at;
      m(at) = -0.25;
      EXPECT_EQ(app::value_range(m).least, 0.25) << n << " " << at;
    }
  }
}

TEST(ValueRange, LeavesOutWhatIsNotFiniteAndZerosOfTheLeast) {
  const arma::mat m{{nan, 4.0, -infinity, 0.0, 1.5, infinity, -0.0, 2.0, nan, -infinity}};
  const app::ValueRange e = app::value_range(m);
  EXPECT_EQ(e.smallest, 0);
  EXPECT_EQ(e.largest, 4);
  EXPECT_EQ(e.least, 1.5);
}

TEST(ValueRange, OfNothingFiniteIsZero) {
  for (const double v : {nan, infinity, -infinity}) {
    const app::ValueRange e = app::value_range(arma::mat(3, 4, arma::fill::value(v)));
    EXPECT_EQ(e.smallest, 0);
    EXPECT_EQ(e.largest, 0);
    EXPECT_EQ(e.least, 0);
  }
  EXPECT_EQ(app::value_range(arma::mat()).largest, 0);
}

}  // namespace
