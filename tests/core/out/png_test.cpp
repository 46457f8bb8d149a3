#include "core/out/png.hpp"

#include <cairo.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/out/png_bytes.hpp"
#include "tests/support/error_of.hpp"

using namespace core::figures;
using core::colour::Rgb;
using core::colour::rgb;
using testing::HasSubstr;

namespace {

/// The pixels of a PNG as libpng reads them.
struct Picture {
  std::size_t columns = 0, rows = 0;
  std::vector<Rgb> pixels;

  explicit Picture(std::string_view bytes) {
    const auto read = [](void* rest, unsigned char* data, unsigned int length) {
      auto& left = *static_cast<std::string_view*>(rest);
      if (length > left.size()) return CAIRO_STATUS_READ_ERROR;
      left.copy(reinterpret_cast<char*>(data), length);
      left.remove_prefix(length);
      return CAIRO_STATUS_SUCCESS;
    };
    cairo_surface_t* surface = cairo_image_surface_create_from_png_stream(read, &bytes);
    EXPECT_EQ(cairo_surface_status(surface), CAIRO_STATUS_SUCCESS);
    EXPECT_EQ(cairo_image_surface_get_format(surface), CAIRO_FORMAT_RGB24);
    columns = static_cast<std::size_t>(cairo_image_surface_get_width(surface));
    rows = static_cast<std::size_t>(cairo_image_surface_get_height(surface));
    const unsigned char* line = cairo_image_surface_get_data(surface);
    for (std::size_t i = 0; i < rows; ++i, line += cairo_image_surface_get_stride(surface))
      for (std::size_t j = 0; j < columns; ++j) {
        std::uint32_t pixel = 0;
        std::memcpy(&pixel, line + 4 * j, sizeof pixel);
        pixels.push_back(rgb(pixel & 0xffffff));
      }
    cairo_surface_destroy(surface);
  }
  Rgb at(std::size_t x, std::size_t y) const { return pixels.at(y * columns + x); }
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

TEST(PngBytes, OfMorePixelsThanAnImageMayHaveAreRefused) {
  const std::vector<Rgb> pixels(40000);
  EXPECT_THAT(support::error_of([&] { png_bytes(1, pixels.size(), pixels); }),
              HasSubstr("the picture cannot be made: "));
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

TEST(Png, IsDrawnWhateverCharactersAWordHas) {
  DisplayList figure;
  figure.width = 40, figure.height = 20;
  Text words;
  words.runs.push_back({"a\uFFFE\uFDD0\xff", 10, rgb(0)});
  figure.items.emplace_back(words);
  EXPECT_EQ(Picture(png_of(figure, 1)).columns, 40u);
}

}  // namespace
