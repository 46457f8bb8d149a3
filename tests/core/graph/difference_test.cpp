#include "core/graph/difference.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "core/base/error.hpp"
#include "tests/support/error_of.hpp"

namespace core::compare {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity(),
                 nan = std::numeric_limits<double>::quiet_NaN();

const arma::mat matrix_a{{1, -2, 0}, {4, 0.5, 3}}, matrix_b{{1, 2, 0}, {5, 0.25, 0}};

void expect_equal(const arma::mat& actual, const arma::mat& expected) {
  EXPECT_TRUE(arma::approx_equal(actual, expected, "absdiff", 0)) << actual << expected;
}

TEST(Difference, SubtractsBFromA) {
  expect_equal(difference(DifferenceKind::a_minus_b, matrix_a, matrix_b), {{0, -4, 0}, {-1, 0.25, 3}});
}

TEST(Difference, HasNoSignWhenAbsolute) {
  expect_equal(difference(DifferenceKind::absolute, matrix_a, matrix_b), {{0, 4, 0}, {1, 0.25, 3}});
}

TEST(Difference, IsRelativeToTheLargerOfTheTwo) {
  expect_equal(difference(DifferenceKind::relative, matrix_a, matrix_b), {{0, -2, 0}, {-0.2, 0.5, 1}});
}

TEST(Difference, OfEqualInfinitiesAndOfTwoNaNsIsZero) {
  const arma::mat special{{-inf, inf, nan}};
  for (const auto kind : {DifferenceKind::a_minus_b, DifferenceKind::absolute, DifferenceKind::relative})
    expect_equal(difference(kind, special, special), {{0, 0, 0}});
}

TEST(Difference, OfAnInfinityStaysInfiniteAndOfNaNIsNaN) {
  const arma::mat special{{-inf, inf, nan, 1}}, numbers{{1, 2, 3, nan}};
  const arma::mat signed_ones = difference(DifferenceKind::a_minus_b, special, numbers);
  EXPECT_EQ(signed_ones(0), -inf);
  EXPECT_EQ(signed_ones(1), inf);
  EXPECT_TRUE(std::isnan(signed_ones(2)));
  EXPECT_TRUE(std::isnan(signed_ones(3)));
  EXPECT_EQ(difference(DifferenceKind::absolute, special, numbers)(0), inf);
  EXPECT_EQ(difference(DifferenceKind::relative, special, numbers)(0), -inf);
}

TEST(Difference, OfTwoShapesIsRefusedInOneLine) {
  EXPECT_EQ(support::error_of([] { difference(DifferenceKind::absolute, arma::mat(2, 3), arma::mat(3, 2)); }),
            "comparison: expected two matrices of one shape, got 2×3 and 3×2");
  EXPECT_THROW(max_difference(arma::mat(1, 1), arma::mat(1, 2)), Error);
}

TEST(MaxDifference, FindsTheLargestDistanceAndItsCell) {
  const MaxDifference found = max_difference(matrix_a, matrix_b);
  EXPECT_EQ(found.distance, 4);
  EXPECT_EQ(found.row, 0u);
  EXPECT_EQ(found.column, 1u);
}

TEST(MaxDifference, TakesTheFirstCellRowByRowOfSeveralThatAreAsFar) {
  const MaxDifference found = max_difference({{0, 0, 7}, {7, 7, 7}}, {{0, 0, 0}, {0, 0, 0}});
  EXPECT_EQ(found.row, 0u);
  EXPECT_EQ(found.column, 2u);
}

TEST(MaxDifference, CallsANumberInfinitelyFarFromNaNAndFromAnInfinity) {
  EXPECT_EQ(max_difference({{5, nan}}, {{0, 1}}).distance, inf);
  EXPECT_EQ(max_difference({{5, nan}}, {{0, 1}}).column, 1u);
  EXPECT_EQ(max_difference({{5, 2}}, {{0, -inf}}).distance, inf);
  EXPECT_EQ(max_difference({{inf, 0}}, {{-inf, 0}}).distance, inf);
  EXPECT_EQ(max_difference({{inf, 0}}, {{nan, 0}}).distance, inf);
}

TEST(MaxDifference, CallsSignedZerosEqualInfinitiesAndNaNsEqual) {
  EXPECT_EQ(max_difference({{inf, -inf, nan, 0.0}}, {{inf, -inf, nan, -0.0}}).distance, 0);
}

}  // namespace
}  // namespace core::compare
