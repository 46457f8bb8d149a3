#include "core/graph/formulas.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace core::attention {
namespace {

arma::mat column(double a, double b) {
  return arma::vec{a, b};
}

TEST(SoftmaxRows, OfARowWithoutVisibleKeysIsNaN) {
  const arma::mat w = softmax_rows(arma::mat{{-INFINITY, -INFINITY}, {0, -INFINITY}});
  EXPECT_TRUE(std::isnan(w(0, 0)) && std::isnan(w(0, 1)));
  EXPECT_EQ(w(1, 0), 1);
  EXPECT_EQ(w(1, 1), 0);
}

TEST(SoftmaxRows, IsFiniteForScoresThatOverflowTheExponential) {
  const arma::mat w = softmax_rows(arma::mat{{1000, 0}, {-1000, -1000}});
  EXPECT_EQ(w(0, 0), 1);
  EXPECT_EQ(w(0, 1), 0);
  EXPECT_EQ(w(1, 0), 0.5);
}

TEST(ReshapedWithoutTranspose, ReadsHeadsOneAfterTheOther) {
  // Two heads, two tokens, one column: [[a, b], [c, d]] read as tokens of two columns.
  const arma::mat merged = reshaped_without_transpose({column(1, 2), column(3, 4)});
  EXPECT_TRUE(arma::approx_equal(merged, arma::mat{{1, 2}, {3, 4}}, "absdiff", 0));
}

TEST(Concatenated, PutsHeadsSideBySide) {
  const arma::mat merged = concatenated({column(1, 2), column(3, 4)});
  EXPECT_TRUE(arma::approx_equal(merged, arma::mat{{1, 3}, {2, 4}}, "absdiff", 0));
}

}  // namespace
}  // namespace core::attention
