#include "core/engine/kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "tests/support/random_model.hpp"

namespace core::attention::fast {
namespace {

TEST(Exponential, IsRightToTheLastBitsOverTheWholeRange) {
  for (const Kernels& kernels : kernels_of_this_processor()) {
    support::Random random(1);
    for (const double range : {1e-9, 0.3, 5.0, 40.0, 700.0}) {
      std::vector<double> numbers;
      for (int k = 0; k < 4001; ++k) numbers.push_back(-range * (support::number(random) + 2) / 4);
      std::vector<double> found = numbers;
      kernels.exponentials(found.data(), found.size());
      for (std::size_t k = 0; k < numbers.size(); ++k) {
        const double expected = std::exp(numbers[k]);
        ASSERT_NEAR(found[k] / expected, 1, 4.5e-16) << kernels.name << " at " << numbers[k];
      }
    }
  }
}

TEST(Exponential, IsExactWhereItMustBe) {
  for (const Kernels& kernels : kernels_of_this_processor()) {
    double numbers[] = {0, -0.0, -INFINITY, NAN, -800, -740, 700};
    kernels.exponentials(numbers, 7);
    EXPECT_EQ(numbers[0], 1) << kernels.name;
    EXPECT_EQ(numbers[1], 1);
    EXPECT_EQ(numbers[2], 0);
    EXPECT_TRUE(std::isnan(numbers[3]));
    EXPECT_EQ(numbers[4], 0);
    EXPECT_NEAR(numbers[5], std::exp(-740.0), 1e-323);  // below the normal range: one unit is 5e-324
    EXPECT_NEAR(numbers[6] / std::exp(700.0), 1, 4.5e-16);
  }
}

TEST(Kernels, OfEveryWidthGiveTheSameRow) {
  support::Random random(2);
  for (const std::size_t n : {1, 2, 3, 7, 8, 15, 16, 17, 40, 129}) {
    const arma::mat a = support::matrix(random, n, 1), b = support::matrix(random, n, 1);
    double sum = 0, top = -INFINITY;
    for (std::size_t j = 0; j < n; ++j) top = std::max(top, a(j));
    for (std::size_t j = 0; j < n; ++j) sum += std::exp(a(j) - top);
    for (const Kernels& kernels : kernels_of_this_processor()) {
      const std::size_t whole = (n + 7) / 8 * 8;
      std::vector<double> scores(whole, -INFINITY), e(whole, 5);
      std::copy(a.begin(), a.end(), scores.begin());
      const RowSums row = kernels.softmax(scores.data(), e.data(), n);
      for (std::size_t j = 0; j < n; ++j) EXPECT_NEAR(e[j] / std::exp(a(j) - top), 1, 1e-15) << kernels.name;
      for (std::size_t j = n; j < (n + kernels.lanes - 1) / kernels.lanes * kernels.lanes; ++j)
        EXPECT_EQ(e[j], 0) << kernels.name;
      EXPECT_EQ(row.largest, top) << kernels.name;
      EXPECT_NEAR(row.sum / sum, 1, 1e-14) << kernels.name;
      EXPECT_NEAR(kernels.dot(a.memptr(), b.memptr(), n), arma::dot(a, b), 1e-12) << kernels.name;
      arma::mat c = a;
      kernels.add(c.memptr(), b.memptr(), 0.5, n);
      EXPECT_TRUE(arma::approx_equal(c, a + 0.5 * b, "absdiff", 1e-15)) << kernels.name;
      c = a;
      kernels.blend(c.memptr(), 0.25, 2, a.memptr(), -3, b.memptr(), n);
      EXPECT_TRUE(arma::approx_equal(c, 2.25 * a - 3 * b, "absdiff", 1e-14)) << kernels.name;
      EXPECT_TRUE(kernels.finite(c.memptr(), n));
      c(n - 1) = INFINITY;
      EXPECT_FALSE(kernels.finite(c.memptr(), n)) << kernels.name;
    }
  }
}

TEST(Products, AreRowsTimesItemsOverManyPanelsAndRaggedEnds) {
  support::Random random(4);
  for (const auto& [n_rows, n_items, depth] : {std::array<std::size_t, 3>{1, 1, 1},
                                               {8, 24, 0},
                                               {13, 50, 7},
                                               {19, 1100, 64},
                                               {9, 60, 3000}})  // a panel of these alone fills a cache
    for (const Kernels& kernels : kernels_of_this_processor()) {
      const std::size_t width = kernels.panel_width, n_panels = (n_items + width - 1) / width;
      const std::size_t apart = n_panels * width;
      const arma::mat rows = support::matrix(random, n_rows, depth),
                      items = support::matrix(random, n_items, depth);
      arma::mat by_row(depth, n_rows), expected(n_rows, n_items);
      if (depth > 0) by_row = rows.t(), expected = -0.5 * rows * items.t();  // Armadillo's t() reads row 0
      std::vector<double> panels(apart * depth, 0), found(n_rows * apart, 77);
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
          const double number = found[i * apart + j];
          if (j < ends[i])
            EXPECT_NEAR(number, expected(i, j), 1e-13 * double(depth + 1))
                << kernels.name << ": " << i << ", " << j;
          else
            EXPECT_EQ(number, j < whole ? -INFINITY : 77) << kernels.name << ": " << i << ", " << j;
        }
      }
    }
}

TEST(Contexts, AreWeightsTimesValuesOverManyKeysAndRaggedEnds) {
  support::Random random(3);
  for (const auto& [n_rows, n_keys, d_head] :
       {std::array<std::size_t, 3>{1, 1, 1}, {7, 1024, 8}, {13, 1025, 13}, {50, 2100, 40}, {6, 513, 64}})
    for (const Kernels& kernels : kernels_of_this_processor()) {
      const std::size_t stride = (d_head + 7) / 8 * 8, row = (n_keys + 7) / 8 * 8, apart = d_head + 3;
      const arma::mat weights = support::matrix(random, n_rows, n_keys),
                      values = support::matrix(random, n_keys, d_head);
      std::vector<double> w(n_rows * row, 0), v(n_keys * stride, 0), sums(n_rows), found(n_rows * apart, 77);
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
        const arma::rowvec sum = ends[i] == 0
                                     ? arma::rowvec(d_head, arma::fill::zeros)
                                     : arma::rowvec(weights.row(i).head(ends[i]) * values.head_rows(ends[i]));
        for (std::size_t c = 0; c < d_head; ++c)
          EXPECT_NEAR(found[i * apart + c], 1.25 * sum(c) / sums[i], 1e-12 * double(n_rows + n_keys))
              << kernels.name << ": " << i << ", " << c;
        for (std::size_t c = d_head; c < apart; ++c)
          EXPECT_EQ(found[i * apart + c], 77) << kernels.name;  // not its own
      }
    }
}

}  // namespace
}  // namespace core::attention::fast
