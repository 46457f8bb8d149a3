// Pictures without OpenGL: the number and flags of a block; reading in parts or again after an edit gives the
// same as reading all at once.
#include "app/screen/heatmap_image.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/pictures.hpp"
#include "tests/support/random_model.hpp"

namespace {

using app::render::ColorMap;
using app::render::HeatmapImage;
using app::render::HeatmapPicture;
using app::render::PooledMatrix;
using app::render::pooling;
using core::attention::fast::HeadChange;
using support::pooled;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Returns a picture of the whole matrix with a size in pixels.
HeatmapPicture whole(const arma::mat& numbers, ColorMap map, int width, int height) {
  HeatmapPicture p = support::whole_picture(numbers, map, 1, 1);
  p.width = width, p.height = height;
  return p;
}

TEST(Pooling, IsAWholeNumberOfVisibleCellsSoThatABlockHasAPixelAtLeast) {
  const arma::mat m(1024, 841);
  EXPECT_EQ(pooling(whole(m, ColorMap::weights, 841, 2000)).columns, 1u);
  EXPECT_EQ(pooling(whole(m, ColorMap::weights, 420, 420)).columns, 3u);
  HeatmapPicture p = whole(m, ColorMap::weights, 100, 100);
  p.part = {300, 0, 400, 200};
  EXPECT_EQ(pooling(p).columns, 1u);
  EXPECT_EQ(pooling(p).rows, 2u);
}

/// Expects the number of the only block of a matrix, read from columns, from rows, and from rows of float32.
void expect_block(const arma::mat& m, ColorMap map, double expected) {
  HeatmapPicture p = whole(m, map, 1, 1);
  const arma::mat turned = m.t();
  const std::vector<float> in_float32(turned.begin(), turned.end());
  using core::attention::fast::RowView;
  for (const RowView& rows : {RowView(), RowView{turned.memptr(), m.n_cols, m.n_rows, m.n_cols},
                              RowView{.stride = m.n_cols,
                              .n_rows = m.n_rows,
                              .n_cols = m.n_cols,
                              .float32_numbers = in_float32.data()}}) {
    p.cells.rows = rows;
    if (rows.float32_numbers) expected = static_cast<float>(expected);
    const PooledMatrix block = pooled(p);
    ASSERT_EQ(block.n_rows() * block.n_columns(), 1u);
    const double number = block.numbers(0)[0];
    EXPECT_TRUE(number == expected || (std::isnan(number) && std::isnan(expected)))
        << number << " " << expected << " " << bool(rows) << m;
  }
}

TEST(Block, ShowsItsStrongestNumber) {
  expect_block({{0.1, 0.75}, {0.2, 0.0}}, ColorMap::weights, 0.75);
  expect_block({{0.5, -1.0}, {0.25, 0.0}}, ColorMap::values, -1);
  expect_block({{-infinity, -3, 2}, {-infinity, -infinity, -infinity}}, ColorMap::values, -3);
  for (const ColorMap map : {ColorMap::weights, ColorMap::values}) {
    expect_block(arma::mat(2, 2, arma::fill::value(-infinity)), map, -infinity);
    for (const arma::uword at : {0u, 1u, 2u, 3u}) {
      arma::mat m{{0.5, 1.0}, {0.25, infinity}};
      m(at) = nan;
      expect_block(m, map, nan);
    }
  }
}

TEST(Block, IsHiddenOrDroppedOnlyWhenEveryCellIs) {
  const arma::mat m(2, 2, arma::fill::zeros);
  arma::mat flags(2, 2, arma::fill::zeros);
  HeatmapPicture p = whole(m, ColorMap::weights, 1, 1);
  EXPECT_EQ(pooled(p).flags(0), nullptr);
  p.cells.visible = &flags;
  EXPECT_EQ(*pooled(p).flags(0), PooledMatrix::masked);
  p.cells.visible = nullptr, p.cells.kept = &flags;
  EXPECT_EQ(*pooled(p).flags(0), PooledMatrix::dropped);
  flags(0, 1) = 1.25;
  EXPECT_EQ(*pooled(p).flags(0), 0);
}

TEST(Blocks, AtTheEdgeAreSmallerAndLoseNothing) {
  // 5 × 5 on 2 × 2 pixels: blocks of 3 × 3 cells, the last ones 2 wide.
  arma::mat m(5, 5, arma::fill::zeros);
  m(4, 4) = 1, m(2, 3) = 0.5;
  const PooledMatrix t = pooled(whole(m, ColorMap::weights, 2, 2));
  ASSERT_EQ(t.n_rows(), 2u);
  ASSERT_EQ(t.n_columns(), 2u);
  EXPECT_EQ(t.numbers(0)[0], 0);
  EXPECT_EQ(t.numbers(0)[1], 0.5);
  EXPECT_EQ(t.numbers(1)[0], 0);
  EXPECT_EQ(t.numbers(1)[1], 1);
}

TEST(VisiblePart, BeginsWithTheCellAtItsCornerAndMayReachBeyondTheMatrix) {
  arma::mat m(8, 8, arma::fill::zeros);
  m(2, 5) = 1;
  HeatmapPicture p = whole(m, ColorMap::weights, 100, 100);
  p.part = {5.5, 2, 7.5, 4};
  EXPECT_EQ(pooled(p).n_columns(), 3u);
  EXPECT_EQ(pooled(p).n_rows(), 2u);
  EXPECT_EQ(pooled(p).numbers(0)[0], 1);
  p.part = {-2, 0, 2, 8};
  EXPECT_EQ(pooled(p).n_columns(), 2u);
  p.part = {15, 0, 17, 8};
  EXPECT_TRUE(pooled(p).is_empty());
  EXPECT_TRUE(pooled(HeatmapPicture{}).is_empty());
  EXPECT_TRUE(pooled(whole(m, ColorMap::values, 0, 10)).is_empty());
}

/// Weights as the engine stores them, and as a matrix.
struct Weights {
  std::size_t n;
  std::vector<double> cells, largest, sums;
  arma::mat visible;

  Weights(support::Random& random, std::size_t n_tokens)
      : n(n_tokens), cells(n * n), largest(n), sums(n), visible(support::zeros_and_ones(random, n, n)) {
    for (double& cell : cells) cell = support::number(random);
    for (double& number : largest) number = support::number(random);
    for (double& sum : sums) sum = 4 + std::abs(support::number(random));
  }
  arma::mat matrix() const {
    arma::mat m(n, n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) m(i, j) = std::exp(cells[i * n + j] - largest[i]) / sums[i];
    return m;
  }
  HeatmapPicture picture(int pixels, std::uint64_t version = 1, const HeadChange* change = nullptr) const {
    HeatmapPicture p;
    p.cells.rows = {cells.data(), n, n, n, largest.data(), sums.data(), support::exponentials};
    p.cells.version = version, p.cells.change = change;
    p.map = ColorMap::weights, p.low = 0, p.high = 1;
    p.cells.visible = &visible;
    p.part.right = p.part.bottom = static_cast<double>(n);
    p.width = p.height = pixels;
    return p;
  }
  /// Changes the row and column of a token, and the sums from that row on.
  HeadChange edit(support::Random& random, std::size_t token) {
    for (std::size_t k = 0; k < n; ++k) {
      cells[token * n + k] = support::number(random);
      cells[k * n + token] = support::number(random);
    }
    for (std::size_t i = token; i < n; ++i) sums[i] *= 1.1;
    return {false, {token}, token, token};
  }
};

struct ImageOfRows : testing::Test {
  static constexpr std::size_t n = 53;
  support::Random random{41};
  Weights w{random, n};
  core::ThreadPool threads{3};
  HeatmapImage image{threads};

  /// Reads about `cells` cells at a time; returns the number of reads.
  int show(const HeatmapPicture& p, double cells = infinity) {
    int count = 1;
    while (!image.read(p, cells)) ++count;
    EXPECT_TRUE(image.has_numbers_of(p));
    image.paint(p, 1);
    return count;
  }
  void expect_all(const HeatmapPicture& p) {
    EXPECT_TRUE(image.pixels() == support::pixels_of(w.matrix(), p));
  }
};

TEST_F(ImageOfRows, IsThatOfTheSameMatrix) {
  for (const int pixels : {37, 100, 12, 5}) {
    show(w.picture(pixels));
    expect_all(w.picture(pixels));
  }
}

TEST_F(ImageOfRows, IsAfterEditsThatOfTheEditedMatrix) {
  for (const int pixels : {60, 13}) {
    show(w.picture(pixels));
    for (std::uint64_t version = 2; version < 20; ++version) {
      const HeadChange change = w.edit(random, support::below(random, n));
      const HeatmapPicture now = w.picture(pixels, version, &change);
      EXPECT_EQ(image.cells_to_read(now), 0);
      show(now);
      expect_all(now);
    }
    w = Weights(random, n);
  }
}

TEST_F(ImageOfRows, IsReadWholeWhenAVersionWasMissed) {
  show(w.picture(10));
  for (double& cell : w.cells) cell -= 1;
  const HeadChange small{false, {3}, {}, n};
  EXPECT_GT(image.cells_to_read(w.picture(10, 3, &small)), 0);
  show(w.picture(10, 3, &small));
  expect_all(w.picture(10, 3));
}

TEST_F(ImageOfRows, FollowsTheRangeTheMaskAndTheKindWhileTheNumbersStay) {
  show(w.picture(10));
  HeatmapPicture p = w.picture(10);
  p.high = 2;
  show(p);
  expect_all(p);
  w.visible.zeros();
  p.cells.flags_version = 1;
  EXPECT_FALSE(image.has_numbers_of(p));
  show(p);
  expect_all(p);
  HeatmapPicture scores = p;
  scores.cells.rows = {w.cells.data(), n, n, n};
  show(scores);
  HeatmapImage fresh(threads);
  fresh.read(scores, infinity);
  fresh.paint(scores, 1);
  EXPECT_TRUE(image.pixels() == fresh.pixels());
}

TEST_F(ImageOfRows, SaysWhichPixelsAreOthers) {
  std::fill(w.cells.begin(), w.cells.end(), 0.5);
  std::fill(w.largest.begin(), w.largest.end(), 1);
  std::fill(w.sums.begin(), w.sums.end(), 1);
  w.visible.ones();
  show(w.picture(2 * n));
  const std::uint64_t before = image.painted({});
  const HeadChange row{false, {40}, {}, n};
  show(w.picture(2 * n, 2, &row));
  EXPECT_EQ(image.painted({}), before) << "the same numbers";
  for (std::size_t k = 0; k < n; ++k) w.cells[40 * n + k] = 0.75;
  image.read(w.picture(2 * n, 3, &row), infinity);
  const auto rows = image.paint(w.picture(2 * n, 3, &row), 1);
  EXPECT_EQ(rows.begin, 80);
  EXPECT_EQ(rows.end, 82);
  EXPECT_EQ(image.painted({0, 0, 1, 0.5f}), before);
  EXPECT_NE(image.painted({0, 0.7f, 1, 0.8f}), before);
}

TEST_F(ImageOfRows, IsTheSameInPortionsAndTheLastOneUntilThen) {
  for (const bool by_rows : {true, false}) {
    const arma::mat first = w.matrix();
    HeatmapPicture p = w.picture(14);
    if (!by_rows) p.cells.rows = {}, p.cells.numbers = &first;
    show(p);
    const auto before = image.pixels();
    w = Weights(random, n);
    const arma::mat second = w.matrix();
    HeatmapPicture next = w.picture(14, 9);
    if (!by_rows) next.cells.rows = {}, next.cells.numbers = &second;
    EXPECT_FALSE(image.read(next, 10 * n));
    EXPECT_FALSE(image.needs_painting(next, 1));
    EXPECT_TRUE(image.pixels() == before);
    EXPECT_GE(show(next, 10 * n), 3);
    expect_all(next);
  }
}

TEST_F(ImageOfRows, FollowsAnEditBetweenTwoPortionsAndGoesBackToTheShownOne) {
  show(w.picture(14));
  Weights other(random, n);
  EXPECT_FALSE(image.read(other.picture(14, 7), 20 * n));
  const HeadChange change = other.edit(random, 31);
  EXPECT_FALSE(image.read(other.picture(14, 8, &change), 20 * n));
  while (!image.read(other.picture(14, 8), 20 * n)) {
  }
  image.paint(other.picture(14, 8), 1);
  EXPECT_TRUE(image.pixels() == support::pixels_of(other.matrix(), other.picture(14, 8)));
  show(w.picture(14));
  EXPECT_FALSE(image.read(other.picture(14, 10), 20 * n));
  const HeadChange edit = w.edit(random, 50);
  show(w.picture(14, 2, &edit));
  expect_all(w.picture(14, 2));
}

}  // namespace
