#include "app/screen/pool.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/support/pictures.hpp"
#include "tests/support/random_model.hpp"

namespace {

using app::render::Pool;
using core::attention::fast::HeadChange;
using core::attention::fast::RowView;

/// A matrix as the engine keeps one: row after row with some room between, and a largest and a sum a row.
struct Cells {
  std::size_t rows, columns, stride;
  std::vector<double> cells, largest, sums;

  Cells(support::Random& random, std::size_t n_rows, std::size_t n_columns)
      : rows(n_rows),
        columns(n_columns),
        stride(n_columns + 3),
        cells(n_rows * stride, 1e9),
        largest(n_rows),
        sums(n_rows) {
    for (std::size_t i = 0; i < rows; ++i) change_row(random, i);
    for (double& number : largest) number = support::number(random);
    for (double& sum : sums) sum = 1 + std::abs(support::number(random));
  }
  double& at(std::size_t row, std::size_t column) { return cells[row * stride + column]; }
  void change_row(support::Random& random, std::size_t row) {
    for (std::size_t j = 0; j < columns; ++j) at(row, j) = support::number(random);
  }
  void change_column(support::Random& random, std::size_t column) {
    for (std::size_t i = 0; i < rows; ++i) at(i, column) = support::number(random);
  }
  RowView view() const {
    return {cells.data(), stride, rows, columns, largest.data(), sums.data(), support::exponentials};
  }
};

bool same_blocks(const Pool& a, const Pool& b) {
  if (a.n_rows() != b.n_rows() || a.n_columns() != b.n_columns()) return false;
  for (std::size_t r = 0; r < a.n_rows(); ++r)
    for (std::size_t c = 0; c < a.n_columns(); ++c)
      if (std::bit_cast<std::uint64_t>(a(r, c)) != std::bit_cast<std::uint64_t>(b(r, c))) return false;
  return true;
}

Pool::Written renew(Pool& pool, const RowView& m, bool is_signed, std::size_t block,
                    const HeadChange& change) {
  core::ThreadPool threads(3);
  return pool.renew(m, is_signed, block, block, change, threads);
}

Pool pooled(const RowView& m, bool is_signed, std::size_t block) {
  Pool pool;
  renew(pool, m, is_signed, block, {});
  return pool;
}

TEST(Pool, ShowsOfEachBlockTheLargestWeight) {
  const double two = std::log(2), four = std::log(4), eight = std::log(8);
  const std::vector<double> cells{0, two, -arma::datum::inf, two, four, two}, largest{two, eight}, sums{2, 4};
  const Pool pool =
      pooled({cells.data(), 3, 2, 3, largest.data(), sums.data(), support::exponentials}, false, 2);
  ASSERT_EQ(pool.n_rows(), 1u);
  ASSERT_EQ(pool.n_columns(), 2u);
  EXPECT_DOUBLE_EQ(pool(0, 0), 1.0 / 2);   // 2/2 of a sum of 2, against 4/8 of a sum of 4
  EXPECT_DOUBLE_EQ(pool(0, 1), 1.0 / 16);  // 2/8 of a sum of 4, against nothing
}

TEST(Pool, ShowsRowsWithoutVisibleKeysAsTheEngineKeepsThem) {
  const std::vector<double> cells(4, -arma::datum::inf), largest{0, -arma::datum::inf}, sums{1, 1};
  const Pool pool =
      pooled({cells.data(), 2, 2, 2, largest.data(), sums.data(), support::exponentials}, false, 1);
  EXPECT_EQ(pool(0, 0), 0);
  EXPECT_TRUE(std::isnan(pool(1, 1)));
}

TEST(Pool, OfSignedNumbersShowsTheOneFarthestFromZeroAndMinusInfinityLast) {
  const std::vector<double> cells{-arma::datum::inf, -3, 2, -arma::datum::inf, -arma::datum::inf,
                                  -arma::datum::inf};
  const Pool pool = pooled({cells.data(), 6, 1, 6}, true, 3);
  EXPECT_EQ(pool(0, 0), -3);
  EXPECT_EQ(pool(0, 1), -arma::datum::inf);
}

TEST(Pool, ShowsANaNWhereverItStands) {
  for (const std::size_t at : {0u, 3u, 5u}) {
    std::vector<double> cells{1, 2, 3, 4, 5, arma::datum::inf};
    cells[at] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_TRUE(std::isnan(pooled({cells.data(), 3, 2, 3}, false, 3)(0, 0))) << at;
    EXPECT_TRUE(std::isnan(pooled({cells.data(), 3, 2, 3}, true, 3)(0, 0))) << at;
  }
}

TEST(Pool, RenewedWhereTheNumbersChangedIsTheSameAsPooledAnew) {
  support::Random random(31);
  for (const std::size_t block : {1u, 2u, 3u, 7u})
    for (const bool is_signed : {false, true}) {
      Cells m(random, 29, 23);
      Pool pool = pooled(m.view(), is_signed, block);
      for (int edit = 0; edit < 40; ++edit) {
        HeadChange change{false, {}, {}, m.rows};
        if (support::coin(random)) {
          change.rows = {support::below(random, m.rows), support::below(random, m.rows)};
          for (const std::size_t row : change.rows) m.change_row(random, row);
        }
        if (support::coin(random)) {
          change.column = support::below(random, m.columns);
          m.change_column(random, *change.column);
        }
        if (support::coin(random)) {
          change.first_sum = support::below(random, m.rows);
          for (std::size_t i = change.first_sum; i < m.rows; ++i) m.sums[i] *= 1.5;
        }
        renew(pool, m.view(), is_signed, block, change);
        ASSERT_TRUE(same_blocks(pool, pooled(m.view(), is_signed, block)))
            << block << " " << is_signed << " " << edit;
      }
    }
}

TEST(Pool, NamesEveryBlockThatItWrote) {
  support::Random random(32);
  Cells m(random, 20, 20);
  Pool pool = pooled(m.view(), false, 2);
  const Pool before = pool;
  m.change_row(random, 5);
  m.change_column(random, 13);
  for (std::size_t i = 16; i < 20; ++i) m.sums[i] *= 2;
  const auto written = renew(pool, m.view(), false, 2, {false, {5}, 13, 16});
  for (std::size_t r = 0; r < 10; ++r) EXPECT_EQ(written.rows.at(r), r == 2 || r >= 8) << r;
  EXPECT_EQ(written.column, 6u);
  for (std::size_t r = 0; r < 10; ++r)
    for (std::size_t c = 0; c < 10; ++c)
      if (r != 2 && r < 8 && c != 6) {
        EXPECT_EQ(pool(r, c), before(r, c)) << r << "," << c;
      }
}

TEST(Pool, LooksAtEverythingWhenTheShapeOrTheBlocksAreOthers) {
  support::Random random(33);
  const Cells small(random, 9, 9), large(random, 14, 11);
  Pool pool = pooled(small.view(), false, 3);
  const HeadChange nothing{false, {}, {}, SIZE_MAX};
  renew(pool, large.view(), false, 3, nothing);
  EXPECT_TRUE(same_blocks(pool, pooled(large.view(), false, 3)));
  renew(pool, large.view(), false, 4, nothing);
  EXPECT_TRUE(same_blocks(pool, pooled(large.view(), false, 4)));
  renew(pool, large.view(), true, 4, nothing);
  EXPECT_TRUE(same_blocks(pool, pooled(large.view(), true, 4)));
}

TEST(Pool, KeepsTheOnlyLargeCellOfALargeMatrix) {
  std::vector<double> cells(1024 * 1024, 0);
  cells[511 * 1024 + 130] = 1;
  const Pool pool = pooled({cells.data(), 1024, 1024, 1024}, false, 4);
  EXPECT_EQ(pool(127, 32), 1);
  EXPECT_EQ(pool(127, 33), 0);
}

}  // namespace
