#include "core/figures/png.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "core/figures/png_bytes.hpp"
#include "tests/support/error_of.hpp"

using namespace core::figures;
using core::colour::Rgb;
using core::colour::rgb;
using testing::HasSubstr;

namespace {

/// The pixels of a PNG that we wrote: one IDAT chunk after the header, lines without a filter.
struct Picture {
  std::size_t columns = 0, rows = 0;
  std::string lines;

  explicit Picture(const std::string& bytes) {
    const auto number = [&](std::size_t at) {
      std::size_t n = 0;
      for (std::size_t k = 0; k < 4; ++k) n = n << 8 | static_cast<unsigned char>(bytes.at(at + k));
      return n;
    };
    columns = number(16), rows = number(20);
    EXPECT_EQ(bytes.substr(37, 4), "IDAT");
    lines.resize(rows * (3 * columns + 1));
    uLongf size = lines.size();
    EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(lines.data()), &size,
                         reinterpret_cast<const Bytef*>(bytes.data() + 41), number(33)),
              Z_OK);
    EXPECT_EQ(size, lines.size());
  }
  Rgb at(std::size_t x, std::size_t y) const {
    const std::size_t first = y * (3 * columns + 1) + 1 + 3 * x;
    const auto channel = [&](std::size_t k) { return static_cast<std::uint8_t>(lines.at(first + k)); };
    return {channel(0), channel(1), channel(2)};
  }
};

DisplayList figure_of(std::vector<Item> items) {
  return {40, 20, rgb(0xffffff), "", std::move(items)};
}

TEST(PngBytes, HoldEveryPixel) {
  const std::vector<Rgb> pixels{rgb(0x010203), rgb(0xffffff), rgb(0x808080),
                                rgb(0),        rgb(0xff0000), rgb(0x0000ff)};
  const Picture picture(png_bytes(2, 3, pixels));
  EXPECT_EQ(picture.columns, 3u);
  EXPECT_EQ(picture.rows, 2u);
  for (std::size_t k = 0; k < pixels.size(); ++k) EXPECT_EQ(picture.at(k % 3, k / 3), pixels[k]);
}

TEST(Png, HasScaleTimesAsManyPixels) {
  const Picture picture(png_of(figure_of({Box{{10, 5, 10, 10}, rgb(0xff0000)}}), 2));
  EXPECT_EQ(picture.columns, 80u);
  EXPECT_EQ(picture.rows, 40u);
  EXPECT_EQ(picture.at(20, 10), rgb(0xff0000));
  EXPECT_EQ(picture.at(39, 29), rgb(0xff0000));
  EXPECT_EQ(picture.at(19, 10), rgb(0xffffff));
  EXPECT_EQ(picture.at(40, 29), rgb(0xffffff));
}

TEST(Png, DrawsCellsOfAGridWithHardEdges) {
  const Picture picture(png_of(figure_of({Image{{0, 0, 40, 20}, 1, 2, {rgb(0x112233), rgb(0x445566)}}}), 1));
  EXPECT_EQ(picture.at(19, 19), rgb(0x112233));
  EXPECT_EQ(picture.at(20, 0), rgb(0x445566));
}

TEST(Png, HatchesOnlyTheArea) {
  const Picture picture(png_of(figure_of({Hatch{{{0, 0, 20, 20}}, rgb(0)}}), 1));
  std::size_t inside = 0, outside = 0;
  for (std::size_t y = 0; y < 20; ++y)
    for (std::size_t x = 0; x < 40; ++x)
      if (!(picture.at(x, y) == rgb(0xffffff))) ++(x < 20 ? inside : outside);
  EXPECT_GT(inside, 60u);
  EXPECT_EQ(outside, 0u);
}

TEST(Png, DrawsWords) {
  const Picture picture(png_of(figure_of({Text{{5, 15}, Anchor::start, {{"M", 14, rgb(0)}}}}), 1));
  std::size_t dark = 0;
  for (std::size_t y = 0; y < 20; ++y)
    for (std::size_t x = 0; x < 40; ++x) dark += picture.at(x, y).r < 128;
  EXPECT_GT(dark, 10u);
}

TEST(Png, OfAnUnreasonableScaleIsRefused) {
  for (const double scale : {0.0, -1.0, 17.0, std::nan("")})
    EXPECT_THAT(support::error_of([&] { png_of(figure_of({}), scale); }),
                HasSubstr("scale: expected a number from 0.1 to 16"));
  EXPECT_THAT(support::error_of([] {
                png_of({5000, 10, {}, "", {}}, 8);
              }),
              HasSubstr("scale: the picture would have 40000 × 80 pixels"));
}

}  // namespace
