#include "core/lessons/measures.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace core::lessons {
namespace {

TEST(LessonNumber, HasFourDecimalsUnlessFewerSayItAllOrItIsTiny) {
  EXPECT_EQ(number(0.17912), "0.1791");
  EXPECT_EQ(number(-1.5), "−1.5");
  EXPECT_EQ(number(36), "36");
  EXPECT_EQ(number(300), "300");
  EXPECT_EQ(number(1 - 1e-9), "1.0000");
  EXPECT_EQ(number(0), "0");
  EXPECT_EQ(number(1.2e-16), "1.2e-16");
  EXPECT_EQ(number(NAN), "NaN");
  EXPECT_EQ(number(-INFINITY), "−∞");
  EXPECT_EQ(list(arma::vec{0.5, 1, 2}), "0.5, 1 and 2");
  EXPECT_EQ(list(arma::vec{3}), "3");
}

TEST(LargestDifference, LeavesOutWhatIsNotFinite) {
  const arma::mat a{{1, NAN}, {-INFINITY, 4}}, b{{1.5, 2}, {-INFINITY, 1}};
  EXPECT_EQ(largest_difference(a, b), 3);
  EXPECT_EQ(row_differences(a, b)[0], 0.5);
  EXPECT_EQ(largest_difference(a, arma::mat(1, 2)), INFINITY);
  EXPECT_FALSE(agree(a, a));
  EXPECT_TRUE(agree(arma::mat{{1, 2}}, arma::mat{{1, 2 + 1e-13}}));
}

TEST(LargestAboveDiagonal, IsZeroWhereThereIsNone) {
  EXPECT_EQ(largest_above_diagonal(arma::mat{{9, 1, 2}, {9, 9, 3}, {9, 9, 9}}), 3);
  EXPECT_EQ(largest_above_diagonal(arma::mat(1, 1, arma::fill::ones)), 0);
}

TEST(Entropies, OfEqualSharesAreTheLogarithmOfTheirNumber) {
  const arma::vec bits = entropies(arma::mat{{0.25, 0.25, 0.25, 0.25}, {0, 1, 0, 0}, {0.5, 0, 0, 0.5}});
  EXPECT_DOUBLE_EQ(bits[0], 2);
  EXPECT_DOUBLE_EQ(bits[1], 0);
  EXPECT_DOUBLE_EQ(bits[2], 1);
}

}  // namespace
}  // namespace core::lessons
