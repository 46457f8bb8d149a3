#include "core/base/least_squares.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace core {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(),
                 nan = std::numeric_limits<double>::quiet_NaN();

arma::mat hilbert(std::size_t n) {
  arma::mat h(n, n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) h(i, j) = 1.0 / static_cast<double>(i + j + 1);
  return h;
}

TEST(LeastSquares, LeaveAResidualThatNoColumnExplains) {
  // A line through (0, 1), (1, 3), (2, 4), (3, 4): 1.5 + x, by the normal equations; and its double.
  const arma::mat a{{1, 0}, {1, 1}, {1, 2}, {1, 3}}, b{{1, 2}, {3, 6}, {4, 8}, {4, 8}};
  const auto x = least_squares(a, b);
  ASSERT_TRUE(x);
  EXPECT_TRUE(arma::approx_equal(*x, arma::mat{{1.5, 3}, {1, 2}}, "absdiff", 1e-14));
  arma::arma_rng::set_seed(1);
  const arma::mat tall(200, 12, arma::fill::randn), y(200, 3, arma::fill::randn);
  const auto solved = least_squares(tall, y);
  ASSERT_TRUE(solved);
  EXPECT_LT(arma::abs(tall.t() * (tall * *solved - y)).max(), 1e-12);
}

TEST(LeastSquares, SolveWhatIsSquareWithTheErrorThatItsConditionAllows) {
  const arma::mat h = hilbert(8), ones(8, 1, arma::fill::ones);
  const auto x = least_squares(h, h * ones);
  ASSERT_TRUE(x);
  EXPECT_LT(arma::abs(*x - ones).max(), 1e-5);  // condition 1.5e10
  const auto huge = least_squares(arma::mat{{3e200, 0}, {4e200, 1e-200}}, arma::vec{3e200, 4e200});
  EXPECT_FALSE(huge) << "its columns are too unequal";
  EXPECT_TRUE(least_squares(arma::vec{3e200, 4e200}, arma::vec{3e200, 4e200}));
}

TEST(LeastSquares, AreNoneOfDependentTooFewOrMeaninglessNumbers) {
  EXPECT_FALSE(least_squares(arma::mat{{1, 2}, {2, 4}, {3, 6}}, arma::vec{1, 2, 3}));
  EXPECT_FALSE(least_squares(arma::mat(arma::rowvec{1, 2}), arma::vec{1}));
  EXPECT_FALSE(least_squares(arma::vec{0, 0}, arma::vec{1, 1}));
  EXPECT_FALSE(least_squares(arma::vec{1, nan}, arma::vec{1, 1}));
  EXPECT_FALSE(least_squares(arma::vec{1, 1}, arma::vec{infinity, 1}));
  EXPECT_FALSE(least_squares(hilbert(14), arma::mat(14, 1, arma::fill::ones)));
}

TEST(ConditionNumber, IsTheRatioOfTheSingularValues) {
  EXPECT_EQ(condition_number(arma::diagmat(arma::vec{4, -0.5, 2})), 8);
  EXPECT_NEAR(condition_number(arma::mat{{1, 1}, {0, 1}}), 2.618033988749895,
              1e-14);                                                    // the golden ratio squared
  EXPECT_NEAR(condition_number(hilbert(5)) / 476607.25024259, 1, 1e-9);  // Todd 1954
  EXPECT_EQ(condition_number(arma::mat{{1, 0}, {1, 0}}), infinity);
}

}  // namespace
}  // namespace core
