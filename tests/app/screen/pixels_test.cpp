// The color of every cell, read back from the graphics card and compared with the map on the CPU.
#include <gtest/gtest.h>

#include "tests/support/gl_context.hpp"
#include "tests/support/painted.hpp"
#include "tests/support/pictures.hpp"

namespace {

using app::Rgb;
using app::render::color_at;
using app::render::ColorMap;
using app::render::Picture;
using support::difference;
using support::Painted;
using support::whole_picture;

/// 8 × 8 numbers evenly spaced from low to high.
arma::mat ramp(double low, double high) {
  return arma::reshape(arma::linspace(low, high, 64), 8, 8);
}

class Pixels : public testing::Test {
 protected:
  Painted painted(const Picture& p) { return support::painted(renderer_, p); }

 private:
  support::GlContext context_;
  app::render::HeatmapRenderer renderer_;
};

TEST_F(Pixels, AtTheCentreOfEveryCellAreTheMapsInBothThemes) {
  for (const ColorMap map : {ColorMap::weights, ColorMap::values, ColorMap::mask}) {
    for (const bool dark : {true, false}) {
      const double low = map == ColorMap::values ? -1 : 0;
      const arma::mat m = ramp(low, 1);
      Picture p = whole_picture(m, map, 39, 24);
      p.dark = dark;
      const Painted image = painted(p);
      for (int i = 0; i < 8; ++i) {
        for (int j = 0; j < 8; ++j) {
          const auto row = static_cast<arma::uword>(i), column = static_cast<arma::uword>(j);
          const Rgb expected = color_at(map, dark, (m(row, column) - low) / (1 - low));
          EXPECT_LE(difference(image.at(39 * j + 19, 24 * i + 12), expected), 1)
              << "map " << static_cast<int>(map) << (dark ? " dark " : " light ") << i << "," << j;
        }
      }
    }
  }
}

TEST_F(Pixels, OfARangeFarFromZeroLoseNoPrecision) {
  const arma::mat m = ramp(1e9, 1e9 + 1e-3);
  Picture p = whole_picture(m, ColorMap::weights, 10, 10);
  p.low = 1e9, p.high = 1e9 + 1e-3;
  const Painted image = painted(p);
  EXPECT_LE(difference(image.at(5, 5), color_at(ColorMap::weights, true, 0)), 1);
  EXPECT_LE(difference(image.at(75, 75), color_at(ColorMap::weights, true, 1)), 1);
  EXPECT_LE(
      difference(image.at(35, 5), color_at(ColorMap::weights, true, (m(0, 3) - p.low) / (p.high - p.low))),
      1);
}

TEST_F(Pixels, OfARangeWithoutExtentAreZerosColor) {
  const arma::mat m(1, 1, arma::fill::zeros);
  Picture p = whole_picture(m, ColorMap::values, 20, 20);
  p.low = p.high = 0;
  EXPECT_EQ(painted(p).at(10, 10), color_at(ColorMap::values, true, 0.5));
}

TEST_F(Pixels, LeaveAGapAtTheRightAndTheBottomOfEveryCell) {
  const arma::mat m(2, 3, arma::fill::ones);
  const Painted image = painted(whole_picture(m, ColorMap::weights, 10, 8));
  const Rgb cell = color_at(ColorMap::weights, true, 1), ground = app::palette(true).ground.back;
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x)
      ASSERT_EQ(image.at(x, y), x % 10 == 9 || y % 8 == 7 ? ground : cell) << x << "," << y;
  }
}

TEST_F(Pixels, LeaveNoGapWhenTheCellsAreSmallOrNoneIsWanted) {
  const arma::mat m(3, 3, arma::fill::ones);
  const Rgb cell = color_at(ColorMap::weights, true, 1);
  Picture large = whole_picture(m, ColorMap::weights, 20, 20);
  large.gaps = false;
  for (const Picture& p :
       {whole_picture(m, ColorMap::weights, 7, 7), whole_picture(m, ColorMap::weights, 20, 7), large}) {
    for (const Rgb pixel : painted(p).pixels) ASSERT_EQ(pixel, cell);
  }
}

TEST_F(Pixels, OfCellsThatAreNoWholeNumberWideHaveOneGapEach) {
  const arma::mat m(1, 7, arma::fill::ones);
  Picture p = whole_picture(m, ColorMap::weights, 10, 20);
  p.width = 100;
  const Painted image = painted(p);
  int gaps = 0;
  for (int x = 0; x < 100; ++x) gaps += image.at(x, 3) == app::palette(true).ground.back;
  EXPECT_EQ(gaps, 7);
  EXPECT_EQ(image.at(99, 3), app::palette(true).ground.back);
}

TEST_F(Pixels, OfAZoomedPartAreTheCellsOfThatPart) {
  const arma::mat m = ramp(0, 1);
  Picture p = whole_picture(m, ColorMap::weights, 20, 20);
  p.part.left = 2.5, p.part.right = 4.5, p.part.top = 6, p.part.bottom = 8, p.width = p.height = 80;
  const Painted image = painted(p);
  const auto expected = [&](arma::uword i, arma::uword j) {
    return color_at(ColorMap::weights, true, m(i, j));
  };
  EXPECT_LE(difference(image.at(0, 0), expected(6, 2)), 1);
  EXPECT_LE(difference(image.at(18, 0), expected(6, 2)), 1);
  EXPECT_EQ(image.at(19, 0), app::palette(true).ground.back);
  EXPECT_LE(difference(image.at(20, 0), expected(6, 3)), 1);
  EXPECT_LE(difference(image.at(79, 78), expected(7, 4)), 1);
}

TEST_F(Pixels, BeyondTheMatrixAreGround) {
  const arma::mat m(1, 1, arma::fill::ones);
  Picture p = whole_picture(m, ColorMap::weights, 30, 30);
  p.part.left = -1, p.part.right = 2, p.width = 90;
  const Painted image = painted(p);
  EXPECT_EQ(image.at(15, 15), app::palette(true).ground.back);
  EXPECT_EQ(image.at(45, 15), color_at(ColorMap::weights, true, 1));
  EXPECT_EQ(image.at(75, 15), app::palette(true).ground.back);
}

TEST_F(Pixels, OfOneRowOneColumnAndOneCellFillThePicture) {
  const Rgb full = color_at(ColorMap::weights, true, 1);
  for (const auto& [rows, columns] : {std::pair{1u, 5u}, std::pair{5u, 1u}, std::pair{1u, 1u}}) {
    const arma::mat m(rows, columns, arma::fill::ones);
    for (const Rgb pixel : painted(whole_picture(m, ColorMap::weights, 5, 5)).pixels) ASSERT_EQ(pixel, full);
  }
}

TEST_F(Pixels, OfAPictureOfOnePixelShowTheStrongestNumber) {
  arma::mat m(64, 64, arma::fill::zeros);
  m(63, 7) = 1;
  Picture p = whole_picture(m, ColorMap::weights, 1, 1);
  p.width = p.height = 1;
  const Painted image = painted(p);
  ASSERT_EQ(image.pixels.size(), 1u);
  EXPECT_EQ(image.at(0, 0), color_at(ColorMap::weights, true, 1));
}

TEST_F(Pixels, OfALargeMatrixKeepItsOnlyLargeCellInSight) {
  arma::mat m(1024, 1024, arma::fill::zeros);
  m(511, 130) = 1;
  Picture p = whole_picture(m, ColorMap::weights, 1, 1);
  p.width = p.height = 420;
  const Painted image = painted(p);
  const Rgb full = color_at(ColorMap::weights, true, 1), zero = color_at(ColorMap::weights, true, 0);
  int found = 0;
  for (int y = 0; y < 420; ++y) {
    for (int x = 0; x < 420; ++x) {
      if (image.at(x, y) == full) {
        ++found;
        EXPECT_NEAR(x, 130 * 420.0 / 1024, 2);
        EXPECT_NEAR(y, 511 * 420.0 / 1024, 2);
      } else {
        ASSERT_EQ(image.at(x, y), zero);
      }
    }
  }
  EXPECT_GE(found, 1);
  EXPECT_LE(found, 4);
}

TEST_F(Pixels, OfAnEmptyMatrixAreGround) {
  const arma::mat none;
  Picture p = whole_picture(none, ColorMap::values, 0, 0);
  p.width = 3, p.height = 2, p.dark = false;
  const Painted image = painted(p);
  ASSERT_EQ(image.pixels.size(), 6u);
  for (const Rgb pixel : image.pixels) EXPECT_EQ(pixel, app::palette(false).ground.back);
}

}  // namespace
