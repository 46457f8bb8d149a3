// Texels that are made some at a time are those that are made at once.
#include <gtest/gtest.h>

#include "app/screen/row_texels.hpp"
#include "tests/support/pictures.hpp"
#include "tests/support/random_model.hpp"

namespace {

using app::render::ColorMap;
using app::render::MatrixTexels;
using app::render::Picture;
using app::render::RowTexels;
using app::render::Texels;
using core::attention::fast::HeadChange;

constexpr std::size_t n = 53;

struct Numbers {
  explicit Numbers(support::Random& random) : cells(n * n), visible(support::zeros_and_ones(random, n, n)) {
    for (double& cell : cells) cell = std::abs(support::number(random));
  }
  arma::mat matrix() const { return arma::mat(cells.data(), n, n).t(); }

  std::vector<double> cells;  // row after row
  arma::mat visible;
};

/// A picture of all of the numbers, in blocks of four cells.
Picture picture_of(const Numbers& numbers, std::uint64_t version) {
  Picture p;
  p.cells.version = version;
  p.cells.rows.numbers = numbers.cells.data();
  p.cells.rows.stride = p.cells.rows.n_rows = p.cells.rows.n_cols = n;
  p.map = ColorMap::weights, p.low = 0, p.high = 1;
  p.cells.visible = &numbers.visible;
  p.part.right = p.part.bottom = static_cast<double>(n);
  p.width = p.height = 14;
  return p;
}

void expect_equal(const Texels& a, const Texels& b) {
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.columns, b.columns);
  EXPECT_TRUE(a.data == b.data);
}

TEST(TexelsOfAMatrix, AreTheSameInPortionsAndAtOnce) {
  support::Random random(81);
  core::ThreadPool threads(3);
  const Numbers numbers(random);
  const arma::mat m = numbers.matrix();
  Picture p = picture_of(numbers, 1);
  p.cells.rows = {};
  p.cells.numbers = &m;
  for (const auto& [left, right] : {std::pair{0.0, 53.0}, {17.5, 41.0}, {30.0, 33.0}})
    for (const double cells : {1.0, 300.0, 1e9}) {
      p.part.left = left, p.part.right = right;
      MatrixTexels portions(p);
      int count = 1;
      while (!portions.advance(p, cells, threads)) ++count;
      EXPECT_GE(count, cells == 1 ? 3 : 1) << "a column of texels at a time";
      EXPECT_TRUE(cells < 1e9 || count == 1);
      expect_equal(std::move(portions).texels(), support::texels(p));
    }
}

TEST(TexelsOfRows, AreTheSameInPortionsAndAtOnce) {
  support::Random random(82);
  const Numbers first(random), second(random);
  core::ThreadPool threads(3);
  RowTexels texels(threads);
  const Picture shown = picture_of(first, 1), next = picture_of(second, 2);
  texels.renew(shown, nullptr);
  int count = 1;
  for (; !texels.prepare(next, &shown, 10 * n); ++count)
    expect_equal(texels.texels(), support::texels_of_matrix(first.matrix(), shown));
  EXPECT_EQ(count, 7) << "two rows of blocks at a time";
  texels.renew(next, &shown);
  expect_equal(texels.texels(), support::texels_of_matrix(second.matrix(), next));
}

TEST(TexelsOfRows, FollowAnEditBetweenTwoPortions) {
  support::Random random(83);
  const Numbers first(random);
  Numbers second(random);
  core::ThreadPool threads(3);
  RowTexels texels(threads);
  const Picture shown = picture_of(first, 1);
  texels.renew(shown, nullptr);
  Picture next = picture_of(second, 2);
  EXPECT_FALSE(texels.prepare(next, &shown, 20 * n));
  HeadChange change;
  change.all = false;
  change.rows = {2, 40};
  change.column = 31;
  for (std::size_t k = 0; k < n; ++k)
    second.cells[2 * n + k] = second.cells[40 * n + k] = second.cells[k * n + 31] = 0.75;
  next.cells.version = 3, next.cells.change = &change;
  while (!texels.prepare(next, &shown, 20 * n)) {
  }
  texels.renew(next, &shown);
  expect_equal(texels.texels(), support::texels_of_matrix(second.matrix(), next));
}

TEST(TexelsOfRows, AreThoseOfTheShownPictureAgainWhenTheNextOneIsGivenUp) {
  support::Random random(84);
  Numbers first(random);
  const Numbers second(random);
  core::ThreadPool threads(3);
  RowTexels texels(threads);
  const Picture shown = picture_of(first, 1);
  texels.renew(shown, nullptr);
  EXPECT_FALSE(texels.prepare(picture_of(second, 9), &shown, 20 * n));
  HeadChange change;
  change.all = false;
  change.rows = {50};
  for (std::size_t k = 0; k < n; ++k) first.cells[50 * n + k] = 0.25;
  Picture edited = picture_of(first, 2);
  edited.cells.change = &change;
  texels.renew(edited, &shown);
  expect_equal(texels.texels(), support::texels_of_matrix(first.matrix(), edited));
}

}  // namespace
