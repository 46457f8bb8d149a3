#include "core/base/shared_matrix.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/support/random_model.hpp"

namespace core::attention {
namespace {

using support::Random;

TEST(SharedMatrix, CopiesItsNumbersOnlyWhenAnotherSharesThem) {
  SharedMatrix a = arma::mat{{1, 2}};
  const double* numbers = a->memptr();
  a.edit()(0, 0) = 3;
  EXPECT_EQ(a->memptr(), numbers);
  const SharedMatrix b = a;
  a.edit()(0, 0) = 4;
  EXPECT_EQ((*b)(0, 0), 3);
  EXPECT_FALSE(a.shares_with(b));
}

TEST(SharedMatrix, ComparesBits) {
  EXPECT_NE(SharedMatrix(arma::mat{{1, 0.0}}), SharedMatrix(arma::mat{{1, -0.0}}));
  EXPECT_EQ(SharedMatrix(arma::mat{{1, NAN}}), SharedMatrix(arma::mat{{1, NAN}}));
  EXPECT_NE(SharedMatrix(arma::mat(1, 2, arma::fill::zeros)),
            SharedMatrix(arma::mat(2, 1, arma::fill::zeros)));
}

TEST(SharedMatrix, SetOneByOneIsWhatAMatrixWouldBe) {
  Random random(3);
  std::vector<SharedMatrix> found{arma::mat(7, 9, arma::fill::zeros)};
  std::vector<arma::mat> expected{*found[0]};
  for (int k = 0; k < 400; ++k) {
    const std::size_t from = random() % found.size(), row = random() % 7, column = random() % 9;
    const double number = static_cast<double>(random() % 1000) - 500;
    SharedMatrix next = found[from];
    arma::mat plain = expected[from];
    next.set(row, column, number);
    plain(row, column) = number;
    if (random() % 8 == 0) *next;  // read whole now and then
    ASSERT_EQ(next.at(row, column), number);
    ASSERT_EQ(next.row(row)(column), number);
    ASSERT_EQ(next.column(column)(row), number);
    ASSERT_EQ(next.largest_magnitude(), arma::abs(plain).max());
    found.push_back(next);
    expected.push_back(plain);
  }
  for (std::size_t k = 0; k < found.size(); ++k) {
    for (std::size_t row = 0; row < 7; ++row)
      for (std::size_t column = 0; column < 9; ++column)
        ASSERT_EQ(found[k].at(row, column), expected[k](row, column)) << k;
    ASSERT_TRUE(arma::approx_equal(*found[k], expected[k], "absdiff", 0)) << k;
    const std::size_t other = random() % found.size();
    ASSERT_EQ(found[k] == found[other], arma::approx_equal(expected[k], expected[other], "absdiff", 0))
        << k << ", " << other;
  }
}

TEST(SharedMatrix, CopyOfWhichOneNumberWasSetHoldsLittleMemoryOfItsOwn) {
  const SharedMatrix original = arma::mat(100, 100, arma::fill::zeros);
  const auto held = [](const std::vector<SharedMatrix>& matrices) {
    std::map<const void*, std::size_t> pieces;
    for (const SharedMatrix& m : matrices)
      m.visit_memory([&](const void* address, std::size_t bytes) { pieces[address] = bytes; });
    std::size_t all = 0;
    for (const auto& [address, bytes] : pieces) all += bytes;
    return all;
  };
  std::vector<SharedMatrix> copies{original};
  for (std::size_t k = 0; k < 50; ++k) {
    copies.push_back(copies.back());
    copies.back().set(k, k, 1);
  }
  EXPECT_GE(held({original}), 80'000u);
  EXPECT_LE(held(copies), 2 * held({original}));
  EXPECT_EQ(copies.back()->at(3, 3), 1);
  EXPECT_GE(held({copies.back()}), 160'000u);  // read whole, it has numbers of its own besides
}

TEST(SharedMatrix, KnowsWhetherItIsFiniteAfterEveryEdit) {
  SharedMatrix a = arma::mat{{1, 2}, {3, 4}};
  EXPECT_TRUE(a.is_finite());
  SharedMatrix b = a;
  b.set(1, 1, NAN);
  EXPECT_FALSE(b.is_finite());
  EXPECT_TRUE(a.is_finite());
  SharedMatrix c = b;
  c.set(1, 1, 5);
  EXPECT_TRUE(c.is_finite());
  a.edit()(0, 0) = INFINITY;
  EXPECT_FALSE(a.is_finite());
  SharedMatrix d = a;
  d.set(0, 0, 1);
  EXPECT_TRUE(d.is_finite());
}

TEST(SharedMatrix, RefusesACellThatItDoesNotHave) {
  SharedMatrix a = arma::mat{{1, 2}};
  EXPECT_THROW(a.set(1, 0, 3), std::out_of_range);
  EXPECT_THROW(a.set(0, 2, 3), std::out_of_range);
  EXPECT_EQ(a, SharedMatrix(arma::mat{{1, 2}}));
}

TEST(SharedMatrix, CanBeReadByTwoThreadsAtOnce) {
  SharedMatrix a = arma::mat(200, 200, arma::fill::zeros);
  for (int round = 0; round < 50; ++round) {
    SharedMatrix b = a;
    b.set(7, 7, round);
    double one = 0, other = 0;
    std::thread reader([&, copy = b] { one = arma::accu(*copy) + (copy.is_finite() ? 0 : 1); });
    other = arma::accu(*b) + (b.is_finite() ? 0 : 1);
    reader.join();
    ASSERT_EQ(one, round);
    ASSERT_EQ(other, round);
    a = b;
  }
}

TEST(KnownDifference, IsTheCellThatWasSet) {
  SharedMatrix a = arma::mat{{1, 2}, {3, 4}};
  SharedMatrix b = a;
  EXPECT_FALSE(known_difference(a, b));
  b.set(1, 0, 7);
  ASSERT_TRUE(known_difference(a, b));
  EXPECT_EQ(known_difference(a, b)->row, 1u);
  EXPECT_EQ(known_difference(b, a)->column, 0u);
  EXPECT_EQ((*b)(1, 0), 7);
  EXPECT_EQ((*a)(1, 0), 3);
}

TEST(KnownDifference, IsNothingWhenThereAreSeveralOrNobodyKnows) {
  SharedMatrix a = arma::mat{{1, 2}}, b = a, c = a;
  b.set(0, 0, 7);
  b.edit()(0, 1) = 8;
  EXPECT_FALSE(known_difference(a, b));
  c.set(0, 0, 7);
  c.set(0, 1, 9);
  EXPECT_FALSE(known_difference(a, c));
  c.set(0, 0, 1);
  ASSERT_TRUE(known_difference(a, c));
  EXPECT_EQ(known_difference(a, c)->column, 1u);
  SharedMatrix d = c;
  d.set(0, 0, 3);
  c.edit()(0, 1) = 3;
  EXPECT_FALSE(known_difference(c, d));
  EXPECT_FALSE(known_difference(SharedMatrix(arma::mat{{1, 2}}), d));
}

}  // namespace
}  // namespace core::attention
