// Every pixel of a cell, read back from the graphics card: its color, equal to the color map on the CPU, and
// its marks: masked, dropped, NaN, clipped, outside the cross.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/support/painted.hpp"
#include "tests/support/pictures.hpp"

namespace {

using app::Rgb;
using app::render::color_at;
using app::render::ColorMap;
using app::render::HeatmapPicture;
using support::difference;
using support::Painted;
using support::whole_picture;

/// Returns 8 × 8 numbers evenly spaced from low to high.
arma::mat ramp(double low, double high) {
  return arma::reshape(arma::linspace(low, high, 64), 8, 8);
}

class Pixels : public testing::Test {
 protected:
  Painted painted(const HeatmapPicture& p) { return support::painted(renderer_, p); }

 private:
  support::GlContext context_;
  app::render::HeatmapRenderer renderer_;
};

TEST_F(Pixels, AtTheCenterOfEveryCellAreTheMapsInBothThemes) {
  for (const ColorMap map : {ColorMap::weights, ColorMap::values, ColorMap::mask}) {
    for (const bool dark : {true, false}) {
      const double low = map == ColorMap::values ? -1 : 0;
      const arma::mat m = ramp(low, 1);
      HeatmapPicture p = whole_picture(m, map, 39, 24);
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
  HeatmapPicture p = whole_picture(m, ColorMap::weights, 10, 10);
  p.low = 1e9, p.high = 1e9 + 1e-3;
  const Painted image = painted(p);
  EXPECT_LE(difference(image.at(5, 5), color_at(ColorMap::weights, true, 0)), 1);
  EXPECT_LE(difference(image.at(75, 75), color_at(ColorMap::weights, true, 1)), 1);
  EXPECT_LE(
      difference(image.at(35, 5), color_at(ColorMap::weights, true, (m(0, 3) - p.low) / (p.high - p.low))),
      1);
}

TEST_F(Pixels, LeaveAGapAtTheRightAndTheBottomOfEveryCell) {
  const arma::mat m(2, 3, arma::fill::ones);
  const Painted image = painted(whole_picture(m, ColorMap::weights, 10, 8));
  const Rgb cell = color_at(ColorMap::weights, true, 1), background = app::palette(true).background.back;
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x)
      ASSERT_EQ(image.at(x, y), x % 10 == 9 || y % 8 == 7 ? background : cell) << x << "," << y;
  }
}

TEST_F(Pixels, LeaveNoGapWhenTheCellsAreSmallOrNoneIsWanted) {
  const arma::mat m(3, 3, arma::fill::ones);
  const Rgb cell = color_at(ColorMap::weights, true, 1);
  HeatmapPicture large = whole_picture(m, ColorMap::weights, 20, 20);
  large.gaps = false;
  for (const HeatmapPicture& p :
       {whole_picture(m, ColorMap::weights, 7, 7), whole_picture(m, ColorMap::weights, 20, 7), large}) {
    for (const Rgb pixel : painted(p).pixels) ASSERT_EQ(pixel, cell);
  }
}

TEST_F(Pixels, OfCellsThatAreNoWholeNumberWideHaveOneGapEach) {
  const arma::mat m(1, 7, arma::fill::ones);
  HeatmapPicture p = whole_picture(m, ColorMap::weights, 10, 20);
  p.width = 100;
  const Painted image = painted(p);
  int gaps = 0;
  for (int x = 0; x < 100; ++x) gaps += image.at(x, 3) == app::palette(true).background.back;
  EXPECT_EQ(gaps, 7);
  EXPECT_EQ(image.at(99, 3), app::palette(true).background.back);
}

TEST_F(Pixels, OfAZoomedPartAreTheCellsOfThatPart) {
  const arma::mat m = ramp(0, 1);
  HeatmapPicture p = whole_picture(m, ColorMap::weights, 20, 20);
  p.part.left = 2.5, p.part.right = 4.5, p.part.top = 6, p.part.bottom = 8, p.width = p.height = 80;
  const Painted image = painted(p);
  const auto expected = [&](arma::uword i, arma::uword j) {
    return color_at(ColorMap::weights, true, m(i, j));
  };
  EXPECT_LE(difference(image.at(0, 0), expected(6, 2)), 1);
  EXPECT_LE(difference(image.at(18, 0), expected(6, 2)), 1);
  EXPECT_EQ(image.at(19, 0), app::palette(true).background.back);
  EXPECT_LE(difference(image.at(20, 0), expected(6, 3)), 1);
  EXPECT_LE(difference(image.at(79, 78), expected(7, 4)), 1);
}

TEST_F(Pixels, BeyondTheMatrixAreGround) {
  const arma::mat m(1, 1, arma::fill::ones);
  HeatmapPicture p = whole_picture(m, ColorMap::weights, 30, 30);
  p.part.left = -1, p.part.right = 2, p.width = 90;
  const Painted image = painted(p);
  EXPECT_EQ(image.at(15, 15), app::palette(true).background.back);
  EXPECT_EQ(image.at(45, 15), color_at(ColorMap::weights, true, 1));
  EXPECT_EQ(image.at(75, 15), app::palette(true).background.back);
}

TEST_F(Pixels, OfALargeMatrixKeepItsOnlyLargeCellInSight) {
  arma::mat m(1024, 1024, arma::fill::zeros);
  m(511, 130) = 1;
  HeatmapPicture p = whole_picture(m, ColorMap::weights, 1, 1);
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
  HeatmapPicture p = whole_picture(none, ColorMap::values, 0, 0);
  p.width = 3, p.height = 2, p.dark = false;
  const Painted image = painted(p);
  ASSERT_EQ(image.pixels.size(), 6u);
  for (const Rgb pixel : image.pixels) EXPECT_EQ(pixel, app::palette(false).background.back);
}

using app::palette;
using app::render::Cross;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

int count(const Painted& image, Rgb color) {
  return static_cast<int>(std::count(image.pixels.begin(), image.pixels.end(), color));
}

/// Returns a matrix of one cell.
arma::mat one(double number) {
  arma::mat m(1, 1);
  m(0, 0) = number;
  return m;
}

struct Marks : testing::TestWithParam<bool> {
  Painted painted(const HeatmapPicture& p) { return support::painted(renderer_, p); }
  /// Returns a picture of one cell of 39 × 24 pixels.
  HeatmapPicture cell(const arma::mat& number, ColorMap map = ColorMap::values) const {
    HeatmapPicture p = whole_picture(number, map, 39, 24);
    p.dark = dark;
    return p;
  }
  const bool dark = GetParam();
  support::GlContext context_;
  app::render::HeatmapRenderer renderer_;
};

TEST_P(Marks, HatchMinusInfinityInStepsOfSixAndNothingElse) {
  const arma::mat m = one(-infinity);
  HeatmapPicture p = cell(m);
  p.phase = 4;
  const Painted image = painted(p);
  for (int y = 0; y < 23; ++y) {
    for (int x = 0; x < 38; ++x) {
      const bool on = (x + y + 4) % 6 == 0;
      ASSERT_EQ(image.at(x, y), on ? palette(dark).hatch.lines : palette(dark).hatch.background)
          << x << "," << y;
    }
  }
}

TEST_P(Marks, HatchAHiddenWeightFaintlyOverItsColor) {
  const arma::mat m = one(0.0), none(1, 1, arma::fill::zeros);
  HeatmapPicture p = cell(m, ColorMap::weights);
  p.cells.visible = &none;
  const Painted image = painted(p);
  const Rgb zero = color_at(ColorMap::weights, dark, 0);
  EXPECT_LE(difference(image.at(0, 0), app::mix(app::readable_on(zero), zero, 0.18f)), 1);
  EXPECT_EQ(image.at(1, 0), zero);
  EXPECT_EQ(image.at(5, 0), zero);
  EXPECT_EQ(image.at(6, 0), image.at(0, 0));
}

TEST_P(Marks, CrossOutADroppedCellInTheMiddleOnly) {
  const arma::mat m = one(0.0);
  HeatmapPicture p = cell(m, ColorMap::weights);
  p.cells.kept = &m;
  const Painted image = painted(p);
  const Rgb zero = color_at(ColorMap::weights, dark, 0), ink = app::readable_on(zero);
  EXPECT_EQ(image.at(19, 11), ink);
  EXPECT_EQ(image.at(2, 2), zero);
  EXPECT_EQ(image.at(35, 11), zero);
  int marked = 0;
  for (int y = 0; y < 23; ++y) {
    for (int x = 0; x < 38; ++x) marked += image.at(x, y) != zero;
  }
  EXPECT_GT(marked, 16);
  EXPECT_LT(marked, 64);
}

TEST_P(Marks, TellADroppedCellFromAZeroEvenWhenItIsSmall) {
  const arma::mat m = one(0.0);
  for (const int size : {2, 4, 7, 13}) {
    HeatmapPicture p = whole_picture(m, ColorMap::weights, size, size);
    p.dark = dark;
    const Painted plain = painted(p);
    p.cells.kept = &m;
    EXPECT_NE(painted(p).pixels, plain.pixels) << size;
  }
}

TEST_P(Marks, CrossANaNFromCornerToCorner) {
  const arma::mat m = one(nan);
  const Painted image = painted(cell(m));
  const Rgb background = palette(dark).hatch.background;
  const auto near_bad = [&](Rgb c) {
    return difference(c, palette(dark).status.bad) < difference(c, background);
  };
  EXPECT_TRUE(near_bad(image.at(0, 0)));
  EXPECT_TRUE(near_bad(image.at(37, 0)));
  EXPECT_TRUE(near_bad(image.at(0, 22)));
  EXPECT_TRUE(near_bad(image.at(37, 22)));
  EXPECT_TRUE(near_bad(image.at(19, 11)));
  EXPECT_EQ(image.at(19, 2), background);
  EXPECT_EQ(image.at(3, 11), background);
}

TEST_P(Marks, CutTheUpperCornerAboveTheRangeAndTheLowerOneBelow) {
  const arma::mat above = one(2.0), below = one(-2.0), within = one(1.0);
  const Rgb high = color_at(ColorMap::values, dark, 1), low = color_at(ColorMap::values, dark, 0);
  const Painted up = painted(cell(above)), down = painted(cell(below)), plain = painted(cell(within));
  EXPECT_EQ(up.at(37, 0), app::readable_on(high));
  EXPECT_EQ(up.at(37, 22), high);
  EXPECT_EQ(up.at(26, 0), high);
  EXPECT_EQ(down.at(37, 22), app::readable_on(low));
  EXPECT_EQ(down.at(37, 0), low);
  EXPECT_EQ(plain.at(37, 0), high);
  EXPECT_EQ(plain.at(37, 22), high);
  const arma::mat infinite = one(infinity);
  EXPECT_NE(up.pixels, painted(cell(infinite)).pixels);
}

TEST_P(Marks, CutTheCornerOfSmallCellsToo) {
  const arma::mat m = one(2.0);
  for (const int size : {2, 3, 7}) {
    HeatmapPicture p = whole_picture(m, ColorMap::values, size, size);
    p.dark = dark;
    const Painted image = painted(p);
    const Rgb high = color_at(ColorMap::values, dark, 1);
    EXPECT_NE(image.at(size - 1, 0), high) << size;
    EXPECT_EQ(image.at(0, size - 1), high) << size;
  }
}

TEST_P(Marks, MixCellsOffTheCrossWithTheGround) {
  const arma::mat m(3, 3, arma::fill::ones);
  HeatmapPicture p = cell(m, ColorMap::weights);
  p.cross = Cross{1, 2};
  const Painted image = painted(p);
  const Rgb bright = color_at(ColorMap::weights, dark, 1);
  const Rgb dimmed = app::mix(palette(dark).background.back, bright, dark ? 0.46f : 0.55f);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      const Rgb expected = i == 1 || j == 2 ? bright : dimmed;
      EXPECT_LE(difference(image.at(39 * j + 19, 24 * i + 12), expected), 1) << i << "," << j;
    }
  }
}

TEST_P(Marks, GrowWithTheDisplay) {
  const arma::mat m = one(-infinity);
  HeatmapPicture p = whole_picture(m, ColorMap::values, 60, 60);
  p.dark = dark;
  const int once = count(painted(p), palette(dark).hatch.lines);
  renderer_.set_scale(2);
  const Painted image = painted(p);
  // Lines of twice the thickness at twice the distance.
  EXPECT_NEAR(count(image, palette(dark).hatch.lines), once, 60);
  EXPECT_EQ(image.at(1, 0), palette(dark).hatch.lines);
  EXPECT_EQ(image.at(6, 0), palette(dark).hatch.background);
}

INSTANTIATE_TEST_SUITE_P(BothThemes, Marks, testing::Bool(),
                         [](const auto& theme) { return theme.param ? "Dark" : "Light"; });

}  // namespace
