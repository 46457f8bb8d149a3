#include "core/engine/kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "tests/support/random_model.hpp"

namespace core::attention::fast {
namespace {

/// Inner loops in float32 and float64; tolerances in units of the last place.
template <class Number>
struct Loops : testing::Test {
  static constexpr double unit = std::numeric_limits<Number>::epsilon();
  static constexpr bool is_float64 = std::is_same_v<Number, double>;
  using Matrix = arma::Mat<Number>;

  static Matrix matrix(support::Random& random, std::size_t n_rows, std::size_t n_cols) {
    return arma::conv_to<Matrix>::from(support::matrix(random, n_rows, n_cols));
  }
};
using Formats = testing::Types<double, float>;
TYPED_TEST_SUITE(Loops, Formats);

TYPED_TEST(Loops, TakeExponentialsThatAreRightToTheLastBitsOverTheWholeRange) {
  for (const auto& kernels : supported_kernels<TypeParam>()) {
    support::Random random(1);
    for (const double range : {1e-9, 0.3, 5.0, 40.0, this->is_float64 ? 700.0 : 87.0}) {
      std::vector<TypeParam> numbers;
      for (int k = 0; k < 4001; ++k)
        numbers.push_back(static_cast<TypeParam>(-range * (support::number(random) + 2) / 4));
      std::vector<TypeParam> found = numbers;
      kernels.exponentials(found.data(), found.size());
      for (std::size_t k = 0; k < numbers.size(); ++k) {
        const double expected = std::exp(static_cast<double>(numbers[k]));
        ASSERT_NEAR(found[k] / expected, 1, 2 * this->unit) << kernels.name << " at " << numbers[k];
      }
    }
  }
}

TYPED_TEST(Loops, TakeExponentialsThatAreExactWhereTheyMustBe) {
  const double far = this->is_float64 ? 740 : 102, high = this->is_float64 ? 700 : 88;
  for (const auto& kernels : supported_kernels<TypeParam>()) {
    TypeParam numbers[] = {0, -0.0, -INFINITY, NAN, -800, TypeParam(-far), TypeParam(high)};
    kernels.exponentials(numbers, 7);
    EXPECT_EQ(numbers[0], 1) << kernels.name;
    EXPECT_EQ(numbers[1], 1);
    EXPECT_EQ(numbers[2], 0);
    EXPECT_TRUE(std::isnan(numbers[3]));
    EXPECT_EQ(numbers[4], 0);
    EXPECT_GT(numbers[5], 0);
    EXPECT_NEAR(numbers[5], std::exp(-far), 2 * std::numeric_limits<TypeParam>::denorm_min());
    EXPECT_NEAR(numbers[6] / std::exp(high), 1, 2 * this->unit);
  }
}

TYPED_TEST(Loops, OfEveryWidthGiveTheSameRow) {
  support::Random random(2);
  for (const std::size_t n : {1, 2, 3, 7, 8, 15, 16, 17, 40, 129}) {
    const arma::Mat<TypeParam> a = this->matrix(random, n, 1), b = this->matrix(random, n, 1);
    double sum = 0, top = -INFINITY;
    for (std::size_t j = 0; j < n; ++j) top = std::max<double>(top, a(j));
    for (std::size_t j = 0; j < n; ++j) sum += std::exp(a(j) - top);
    for (const auto& kernels : supported_kernels<TypeParam>()) {
      const std::size_t whole = (n + 15) / 16 * 16;
      std::vector<TypeParam> scores(whole, -INFINITY), e(whole, 5);
      std::copy(a.begin(), a.end(), scores.begin());
      const SoftmaxStats<TypeParam> row = kernels.softmax(scores.data(), e.data(), n);
      // The subtraction rounds: at sizes of ten by some units of the exponent.
      for (std::size_t j = 0; j < n; ++j)
        EXPECT_NEAR(e[j] / std::exp(a(j) - TypeParam(top)), 1, 5 * this->unit) << kernels.name;
      for (std::size_t j = n; j < (n + kernels.lanes - 1) / kernels.lanes * kernels.lanes; ++j)
        EXPECT_EQ(e[j], 0) << kernels.name;
      EXPECT_EQ(row.largest, top) << kernels.name;
      EXPECT_NEAR(row.sum / sum, 1, 45 * this->unit) << kernels.name;
      EXPECT_NEAR(kernels.dot(a.memptr(), b.memptr(), n), arma::dot(a, b), 4500 * this->unit) << kernels.name;
      const double close = 45 * this->unit;
      auto c = a;
      kernels.add(c.memptr(), b.memptr(), 0.5, n);
      EXPECT_TRUE(arma::approx_equal(c, arma::Mat<TypeParam>(a + b / 2), "absdiff", close)) << kernels.name;
      c = a;
      kernels.blend(c.memptr(), 0.25, 2, a.memptr(), -3, b.memptr(), n);
      EXPECT_TRUE(arma::approx_equal(c, arma::Mat<TypeParam>(a * TypeParam(2.25) - 3 * b), "absdiff", close))
          << kernels.name;
      EXPECT_TRUE(kernels.is_finite(c.memptr(), n));
      c(n - 1) = INFINITY;
      EXPECT_FALSE(kernels.is_finite(c.memptr(), n)) << kernels.name;
    }
  }
}

TYPED_TEST(Loops, MultiplyRowsAndItemsOverManyPanelsAndRaggedEnds) {
  support::Random random(4);
  for (const auto& [n_rows, n_items, depth] : {std::array<std::size_t, 3>{1, 1, 1},
                                               {8, 24, 0},
                                               {13, 50, 7},
                                               {19, 1100, 64},
                                               {9, 60, 3000}})  // one such panel fills a cache
    for (const auto& kernels : supported_kernels<TypeParam>()) {
      const std::size_t width = kernels.panel_width, n_panels = (n_items + width - 1) / width;
      const std::size_t apart = n_panels * width;
      const auto rows = this->matrix(random, n_rows, depth), items = this->matrix(random, n_items, depth);
      arma::Mat<TypeParam> by_row(depth, n_rows);
      arma::mat expected(n_rows, n_items);
      if (depth > 0)
        by_row = rows.t(),
        expected = -0.5 * arma::conv_to<arma::mat>::from(rows) *
                   arma::conv_to<arma::mat>::from(items).t();  // Armadillo's t() reads row 0
      std::vector<TypeParam> panels(apart * depth, 0), found(n_rows * apart, 77);
      for (std::size_t j = 0; j < n_items; ++j)
        for (std::size_t c = 0; c < depth; ++c)
          panels[(j / width * depth + c) * width + j % width] = items(j, c);
      std::vector<std::size_t> ends(n_rows);
      for (std::size_t i = 0; i < n_rows; ++i)
        ends[i] = i % 5 == 3 ? 0 : std::min(n_items, 1 + i * n_items / n_rows);
      kernels.products(
          {by_row.memptr(), depth, panels.data(), depth, -0.5, ends.data(), found.data(), apart, n_rows});
      for (std::size_t i = 0; i < n_rows; ++i) {
        const std::size_t whole = (ends[i] + kernels.lanes - 1) / kernels.lanes * kernels.lanes;
        for (std::size_t j = 0; j < apart; ++j) {
          const TypeParam number = found[i * apart + j];
          if (j < ends[i])
            EXPECT_NEAR(number, expected(i, j), 450 * this->unit * double(depth + 1))
                << kernels.name << ": " << i << ", " << j;
          else
            EXPECT_EQ(number, j < whole ? -INFINITY : 77) << kernels.name << ": " << i << ", " << j;
        }
      }
    }
}

TYPED_TEST(Loops, MultiplyWeightsAndValuesOverManyKeysAndRaggedEnds) {
  support::Random random(3);
  for (const auto& [n_rows, n_keys, d_head] :
       {std::array<std::size_t, 3>{1, 1, 1}, {7, 1024, 8}, {13, 1025, 13}, {50, 2100, 40}, {6, 513, 64}})
    for (const auto& kernels : supported_kernels<TypeParam>()) {
      const std::size_t stride = (d_head + 15) / 16 * 16, row = (n_keys + 15) / 16 * 16, apart = d_head + 3;
      const auto weights = this->matrix(random, n_rows, n_keys),
                 values = this->matrix(random, n_keys, d_head);
      const auto exact = [](const arma::Mat<TypeParam>& m) { return arma::conv_to<arma::mat>::from(m); };
      std::vector<TypeParam> w(n_rows * row, 0), v(n_keys * stride, 0), found(n_rows * apart, 77);
      std::vector<double> sums(n_rows);
      std::vector<std::size_t> ends(n_rows);
      for (std::size_t i = 0; i < n_rows; ++i) {
        ends[i] = i % 5 == 3 ? 0 : std::min(n_keys, 1 + i * n_keys / n_rows);
        sums[i] = 0.5 + double(i);
        for (std::size_t j = 0; j < ends[i]; ++j) w[i * row + j] = weights(i, j);
      }
      for (std::size_t j = 0; j < n_keys; ++j)
        for (std::size_t c = 0; c < d_head; ++c) v[j * stride + c] = values(j, c);
      kernels.contexts({w.data(), row, ends.data(), sums.data(), 1.25, v.data(), stride, d_head, found.data(),
                        apart, n_rows});
      for (std::size_t i = 0; i < n_rows; ++i) {
        const arma::rowvec sum =
            ends[i] == 0
                ? arma::rowvec(d_head, arma::fill::zeros)
                : arma::rowvec(exact(weights).row(i).head(ends[i]) * exact(values).head_rows(ends[i]));
        for (std::size_t c = 0; c < d_head; ++c)
          EXPECT_NEAR(found[i * apart + c], 1.25 * sum(c) / sums[i],
                      4500 * this->unit * double(n_rows + n_keys))
              << kernels.name << ": " << i << ", " << c;
        for (std::size_t c = d_head; c < apart; ++c)
          EXPECT_EQ(found[i * apart + c], 77) << kernels.name;  // padding stays untouched
      }
    }
}

}  // namespace
}  // namespace core::attention::fast
