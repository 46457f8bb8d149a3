// Pictures kept between frames, and work deferred to later frames.
#include <epoxy/gl.h>
#include <gtest/gtest.h>

#include "app/theme/imgui_compat.hpp"
#include "tests/support/imgui_input.hpp"
#include "tests/support/painted.hpp"
#include "tests/support/pictures.hpp"

namespace {

using app::render::ColorMap;
using app::render::Cross;
using app::render::HeatmapPicture;
using app::render::HeatmapRenderer;
using support::whole_picture;

/// Returns a picture of n × n weights from 0 to 1, read row by row, without a size in pixels.
HeatmapPicture picture_of(const std::vector<double>& cells, std::size_t n, const std::string& place,
                          std::uint64_t version) {
  HeatmapPicture p;
  p.place = place, p.cells.version = version;
  p.cells.rows = {cells.data(), n, n, n};
  p.map = ColorMap::weights, p.low = 0, p.high = 1;
  p.part.right = p.part.bottom = static_cast<double>(n);
  return p;
}

class Renderer : public testing::Test {
 protected:
  support::GlContext context_;
  HeatmapRenderer renderer;
  arma::mat numbers = arma::mat(4, 4, arma::fill::ones);
  HeatmapPicture picture = whole_picture(numbers, ColorMap::weights, 20, 20);
};

TEST_F(Renderer, KeepsTheLastPictureWhileTheNumbersAreStillToCome) {
  const auto before = support::painted(renderer, picture);
  HeatmapPicture next = picture;
  next.pending = true, next.cells.numbers = nullptr, ++next.cells.version;
  EXPECT_EQ(support::painted(renderer, next).at(10, 10), before.at(10, 10));
  numbers.zeros();
  next.pending = false, next.cells.numbers = &numbers;
  EXPECT_EQ(support::painted(renderer, next).at(10, 10), app::render::color_at(ColorMap::weights, true, 0));
}

TEST_F(Renderer, ShowsAnotherMatrixOfTheSameVersionInAnotherSize) {
  const auto before = support::painted(renderer, picture);
  const arma::mat other(4, 4, arma::fill::zeros);
  picture.cells.numbers = &other;
  picture.width = 33, picture.height = 21;
  const auto after = support::painted(renderer, picture);
  EXPECT_EQ(after.at(10, 10), app::render::color_at(ColorMap::weights, true, 0));
  EXPECT_NE(after.at(10, 10), before.at(10, 10));
  EXPECT_EQ(after.width, 33);
  EXPECT_EQ(after.height, 21);
}

TEST_F(Renderer, SaysWhenATextureWasPaintedLast) {
  const ImTextureID texture = renderer.paint(picture);
  const auto name = static_cast<std::uint64_t>(support::texture_name(texture));
  const std::uint64_t before = renderer.painted(name, {});
  EXPECT_NE(before, 0u);
  renderer.paint(picture);
  EXPECT_EQ(renderer.painted(name, {}), before);
  numbers.zeros();
  ++picture.cells.version;
  EXPECT_EQ(renderer.paint(picture), texture);
  EXPECT_NE(renderer.painted(name, {}), before);
  EXPECT_EQ(renderer.painted(name + 1000, {}), 0u);
}

TEST_F(Renderer, RepaintsNoPictureForItsCross) {
  const auto plain = renderer.paint(picture);
  const auto name = static_cast<std::uint64_t>(support::texture_name(plain));
  const std::uint64_t before = renderer.painted(name, {});
  picture.cross = Cross{1, 1};
  const auto crossed = renderer.paint(picture);
  const auto crossed_name = static_cast<std::uint64_t>(support::texture_name(crossed));
  EXPECT_NE(crossed, plain);
  const std::uint64_t crossed_before = renderer.painted(crossed_name, {});
  picture.cross = Cross{2, 1};
  EXPECT_EQ(renderer.paint(picture), crossed);
  EXPECT_NE(renderer.painted(crossed_name, {}), crossed_before);
  EXPECT_EQ(renderer.painted(name, {}), before);
}

TEST_F(Renderer, RenewsLargePicturesInTurnSeveralFramesLong) {
  constexpr std::size_t n = 2600;
  std::vector<double> cells(n * n, 0.25);
  const auto show = [&](const std::string& place, std::uint64_t version) {
    HeatmapPicture p = picture_of(cells, n, place, version);
    p.width = p.height = 20;
    return support::painted(renderer, p).at(10, 10) ==
           app::render::color_at(ColorMap::weights, true, cells[0]);
  };
  const auto frame = [&](std::uint64_t version) {
    std::string renewed;
    for (const std::string place : {"a", "b", "c"})
      if (show(place, version)) renewed += place;
    renderer.end_frame();
    return renewed;
  };
  EXPECT_EQ(frame(1), "a");
  EXPECT_EQ(frame(1), "ab") << "what has no picture yet waits as well";
  EXPECT_EQ(frame(1), "abc");
  EXPECT_FALSE(renderer.is_behind());
  for (double& cell : cells) cell = 0.75;
  EXPECT_EQ(frame(2), "a");
  EXPECT_TRUE(renderer.is_behind());
  EXPECT_EQ(frame(2), "ab");
  for (double& cell : cells) cell = 1;
  EXPECT_EQ(frame(3), "c") << "in turn, though all are to be renewed again";
  EXPECT_EQ(frame(3), "ac");
  EXPECT_EQ(frame(3), "abc");
  EXPECT_FALSE(renderer.is_behind());
  for (double& cell : cells) cell = 0;
  EXPECT_EQ(frame(4), "a");
  renderer.end_frame();
  EXPECT_FALSE(renderer.is_behind()) << "nobody asks for the others any longer";
}

TEST_F(Renderer, ShowsAnotherPartCoarselyUntilItIsMade) {
  constexpr std::size_t n = 3000;
  arma::mat matrix(n, n, arma::fill::value(0.25));
  matrix.cols(0, 299).fill(0.75);
  HeatmapPicture p = picture_of({}, n, "matrix", 1);
  p.cells.rows = {}, p.cells.numbers = &matrix;
  p.width = p.height = 30;
  const auto frame = [&] {
    const auto image = support::painted(renderer, p);
    renderer.end_frame();
    return image;
  };
  do frame();
  while (renderer.is_behind());
  p.part.right = 2900;
  const auto left = app::render::color_at(ColorMap::weights, true, 0.75);
  const auto coarse = frame();
  EXPECT_TRUE(renderer.is_behind());
  EXPECT_EQ(coarse.at(2, 15), left);
  EXPECT_EQ(coarse.at(3, 15), app::render::color_at(ColorMap::weights, true, 0.25)) << "a texel of 100 cells";
  auto fine = frame();
  while (renderer.is_behind()) fine = frame();
  EXPECT_EQ(fine.at(3, 15), left) << "a texel of 97, which begins in the left part";
}

TEST_F(Renderer, FreesPicturesThatAreLongNotAskedFor) {
  renderer.paint(picture);
  picture.place = "elsewhere";
  for (int frame = 0; frame < 200; ++frame) {
    renderer.paint(picture);
    renderer.end_frame();
    if (frame == 100) {
      EXPECT_EQ(renderer.n_cached_pictures(), 2u);
    }
  }
  EXPECT_EQ(renderer.n_cached_pictures(), 1u);
}

}  // namespace
