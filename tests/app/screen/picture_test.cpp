#include "app/screen/picture.hpp"
#include <array>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <tuple>

#include "tests/support/pictures.hpp"

namespace {

using app::Rgb;
using app::render::color_at;
using app::render::ColorMap;
using app::render::light_ink;
using app::render::Picture;
using app::render::place_in_range;
using app::render::pooling;
using app::render::Texel;
using app::render::Texels;
using support::texels;
namespace mark = app::render::mark;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The whole matrix on that many pixels.
Picture whole(const arma::mat& numbers, ColorMap map, int width, int height) {
  Picture p;
  p.cells.numbers = &numbers, p.map = map, p.width = width, p.height = height;
  p.low = map == ColorMap::values ? -1 : 0;
  p.part.right = static_cast<double>(numbers.n_cols), p.part.bottom = static_cast<double>(numbers.n_rows);
  return p;
}

Texel only(const Texels& t) {
  EXPECT_EQ(t.data.size(), 1u);
  return t.data.empty() ? Texel{} : t.data[0];
}

/// A place of a map in the dark theme, without marks.
Texel at(ColorMap map, double place) {
  return {color_at(map, true, place), 0};
}

int difference(Rgb a, Rgb b) {
  return std::max({std::abs(a.r - b.r), std::abs(a.g - b.g), std::abs(a.b - b.b)});
}

unsigned marks(const Texel& t) {
  return t.marks & ~light_ink;
}

TEST(Pooling, IsOneCellAPixelWhileTheMatrixFits) {
  const arma::mat m(6, 420);
  const auto p = pooling(whole(m, ColorMap::weights, 420, 144));
  EXPECT_EQ(p.rows, 1u);
  EXPECT_EQ(p.columns, 1u);
}

TEST(Pooling, IsAWholeNumberOfCellsSoThatABlockHasAPixelAtLeast) {
  const arma::mat m(1024, 841);
  const auto p = pooling(whole(m, ColorMap::weights, 420, 420));
  EXPECT_EQ(p.rows, 3u);
  EXPECT_EQ(p.columns, 3u);
}

TEST(Pooling, CountsOnlyTheVisiblePart) {
  const arma::mat m(1024, 1024);
  Picture p = whole(m, ColorMap::weights, 100, 100);
  p.part.left = 300, p.part.right = 400, p.part.top = 0, p.part.bottom = 200;
  EXPECT_EQ(pooling(p).columns, 1u);
  EXPECT_EQ(pooling(p).rows, 2u);
}

TEST(Block, ShowsItsLargestWeight) {
  const arma::mat m{{0.1, 0.75}, {0.2, 0.0}};
  EXPECT_EQ(only(texels(whole(m, ColorMap::weights, 1, 1))), at(ColorMap::weights, 0.75));
}

TEST(Block, OfASignedStageShowsTheNumberFarthestFromZero) {
  const arma::mat m{{0.5, -1.0}, {0.25, 0.0}};
  EXPECT_EQ(only(texels(whole(m, ColorMap::values, 1, 1))), at(ColorMap::values, 0));
}

TEST(Block, WithANaNShowsItWhereverItStands) {
  for (const arma::uword at : {0u, 1u, 2u, 3u}) {
    arma::mat m{{0.5, 1.0}, {0.25, arma::datum::inf}};
    m(at) = nan;
    EXPECT_EQ(marks(only(texels(whole(m, ColorMap::weights, 1, 1)))), mark::not_a_number) << at;
    EXPECT_EQ(marks(only(texels(whole(m, ColorMap::values, 1, 1)))), mark::not_a_number) << at;
  }
}

TEST(Block, IsMinusInfinityOnlyWhenEveryCellIs) {
  arma::mat m(2, 2);
  m.fill(-arma::datum::inf);
  EXPECT_EQ(marks(only(texels(whole(m, ColorMap::values, 1, 1)))), mark::minus_infinity);
  m(1, 0) = 0;
  EXPECT_EQ(only(texels(whole(m, ColorMap::values, 1, 1))), at(ColorMap::values, 0.5));
}

TEST(Block, IsHiddenOrDroppedOnlyWhenEveryCellIs) {
  const arma::mat m(2, 2, arma::fill::zeros);
  arma::mat flags(2, 2, arma::fill::zeros);
  Picture p = whole(m, ColorMap::weights, 1, 1);
  p.cells.visible = &flags;
  EXPECT_EQ(marks(only(texels(p))), mark::hidden);
  p.cells.visible = nullptr, p.cells.kept = &flags;
  EXPECT_EQ(marks(only(texels(p))), mark::dropped);
  flags(0, 1) = 1.25;
  EXPECT_EQ(only(texels(p)), at(ColorMap::weights, 0));
}

TEST(Blocks, AtTheEdgeAreSmallerAndLoseNothing) {
  // 5 × 5 on 2 × 2 pixels: blocks of 3, of which the last ones are 2 wide.
  arma::mat m(5, 5, arma::fill::zeros);
  m(4, 4) = 1, m(2, 3) = 0.5;
  const Texels t = texels(whole(m, ColorMap::weights, 2, 2));
  ASSERT_EQ(t.rows, 2u);
  ASSERT_EQ(t.columns, 2u);
  EXPECT_EQ(t.data[0], at(ColorMap::weights, 0));
  EXPECT_EQ(t.data[1], at(ColorMap::weights, 0.5));
  EXPECT_EQ(t.data[2], at(ColorMap::weights, 0));
  EXPECT_EQ(t.data[3], at(ColorMap::weights, 1));
}

TEST(VisiblePart, BeginsWithTheCellAtItsCorner) {
  arma::mat m(8, 8, arma::fill::zeros);
  m(2, 5) = 1;
  Picture p = whole(m, ColorMap::weights, 100, 100);
  p.part.left = 5.5, p.part.right = 7.5, p.part.top = 2, p.part.bottom = 4;
  const Texels t = texels(p);
  EXPECT_EQ(t.columns, 3u);
  EXPECT_EQ(t.rows, 2u);
  EXPECT_EQ(placing(p, t).left, 0.5);
  EXPECT_EQ(placing(p, t).top, 0);
  EXPECT_EQ(t.data[0], at(ColorMap::weights, 1));
}

TEST(VisiblePart, BeyondTheMatrixHasNoTexels) {
  const arma::mat m(2, 2, arma::fill::zeros);
  Picture p = whole(m, ColorMap::weights, 100, 100);
  p.part.left = -2, p.part.right = 2;
  EXPECT_EQ(texels(p).columns, 2u);
  EXPECT_EQ(placing(p, texels(p)).left, -2);
  p.part.left = 5, p.part.right = 7;
  EXPECT_TRUE(texels(p).data.empty());
}

TEST(Number, OutsideTheRangeIsMarkedOnItsSide) {
  const arma::mat m{{2.0, -2.0, 1.0, arma::datum::inf}};
  const Texels t = texels(whole(m, ColorMap::values, 400, 100));
  ASSERT_EQ(t.data.size(), 4u);
  EXPECT_EQ(t.data[0].color, color_at(ColorMap::values, true, 1));
  EXPECT_EQ(marks(t.data[0]), mark::above);
  EXPECT_EQ(t.data[1].color, color_at(ColorMap::values, true, 0));
  EXPECT_EQ(marks(t.data[1]), mark::below);
  EXPECT_EQ(t.data[2], at(ColorMap::values, 1));
  EXPECT_EQ(t.data[3].color, color_at(ColorMap::values, true, 1));
  EXPECT_EQ(marks(t.data[3]), mark::above | mark::hidden);
}

TEST(Number, TooLargeForTheGraphicsCardKeepsItsPlace) {
  const arma::mat m{{1e300, 0.0, -1e300}};
  Picture p = whole(m, ColorMap::values, 300, 100);
  p.low = -2e300, p.high = 2e300;
  const Texels t = texels(p);
  ASSERT_EQ(t.data.size(), 3u);
  EXPECT_EQ(t.data[0], at(ColorMap::values, 0.75));
  EXPECT_EQ(t.data[2], at(ColorMap::values, 0.25));
}

TEST(Number, StandsAlikeInTheQuickAndTheGeneralWay) {
  const arma::mat m = arma::linspace(-3, 5, 641).t();
  for (const auto& [map, low, high] :
       {std::tuple{ColorMap::values, -4.0, 6.0}, std::tuple{ColorMap::values, -3.0, -0.5},
        std::tuple{ColorMap::magma, -2.0, 5.0}, std::tuple{ColorMap::weights, 0.0, 1.0}}) {
    Picture p = whole(m, map, 641, 1);
    p.low = low, p.high = high, p.dots = true;
    const Texels t = texels(p);
    ASSERT_EQ(t.data.size(), m.n_elem);
    for (arma::uword j = 0; j < m.n_elem; ++j) {
      const Rgb expected = color_at(map, true, place_in_range(map, low, high, m(j)));
      EXPECT_LE(difference(t.data[j].color, expected), 1) << low << " " << m(j);
      const unsigned side = m(j) > high ? mark::above : m(j) < low ? mark::below : 0;
      EXPECT_EQ(marks(t.data[j]), m(j) == 0 && side == 0 ? mark::zero : side) << m(j);
    }
  }
}

TEST(Texels, AreMarkedInTheInkThatCanBeReadOnTheirColor) {
  const arma::mat m{{0.0, 2.0, -1.0}}, visible{{0.0, 1.0, 1.0}};
  const std::array expected{mark::hidden, mark::above, mark::below};
  for (const bool dark : {true, false}) {
    Picture p = whole(m, ColorMap::weights, 300, 100);
    p.dark = dark, p.cells.visible = &visible;
    const Texels made = texels(p);
    ASSERT_EQ(made.data.size(), expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
      const Texel& t = made.data[k];
      const bool is_light = app::readable_on(t.color) == app::readable_on(app::rgb(0x000000));
      EXPECT_EQ((t.marks & light_ink) != 0, is_light) << dark << " " << k;
      EXPECT_EQ(marks(t), expected[k]) << k;
    }
  }
}

TEST(HiddenCell, ThatHasAWeightAllTheSameIsNotHatched) {
  const arma::mat m{0.25}, none(1, 1, arma::fill::zeros);
  Picture p = whole(m, ColorMap::weights, 20, 20);
  p.cells.visible = &none;
  EXPECT_EQ(marks(only(texels(p))), 0u);
}

TEST(DroppedCell, ThatIsHiddenAsWellIsShownAsBoth) {
  const arma::mat m(1, 1, arma::fill::zeros), none(1, 1, arma::fill::zeros);
  Picture p = whole(m, ColorMap::weights, 20, 20);
  p.cells.visible = p.cells.kept = &none;
  EXPECT_EQ(marks(only(texels(p))), mark::hidden | mark::dropped);
}

TEST(EmptyPicture, HasNoTexels) {
  const arma::mat none, one(1, 1);
  EXPECT_TRUE(texels(whole(none, ColorMap::values, 10, 10)).data.empty());
  EXPECT_TRUE(texels(whole(one, ColorMap::values, 0, 10)).data.empty());
  EXPECT_TRUE(texels(Picture{}).data.empty());
}

TEST(Texels, OfALogarithmicRangeMarkWhatIsSmallerThanItsLeast) {
  const arma::mat small{0.0005}, zero{0.0}, least{0.001};
  Picture p = whole(small, ColorMap::weights, 1, 1);
  p.least = 0.001;
  EXPECT_EQ(marks(only(texels(p))), mark::below);
  p.cells.numbers = &zero;
  EXPECT_EQ(only(texels(p)), at(ColorMap::weights, 0)) << "0 is no number that is too small";
  p.cells.numbers = &least;
  EXPECT_EQ(marks(only(texels(p))), 0u);
}

TEST(Texels, MarkExactZerosWhereNoNumbersStand) {
  const arma::mat zero{0.0}, nearly{1e-300};
  Picture p = whole(zero, ColorMap::values, 1, 1);
  EXPECT_EQ(marks(only(texels(p))), 0u);
  p.dots = true;
  EXPECT_EQ(marks(only(texels(p))), mark::zero);
  p.cells.numbers = &nearly;
  EXPECT_EQ(marks(only(texels(p))), 0u);
  const arma::mat hidden{0.0};
  p.cells.numbers = &zero, p.cells.visible = &hidden;
  EXPECT_EQ(marks(only(texels(p))), mark::hidden) << "it is hatched already";
}

}  // namespace
