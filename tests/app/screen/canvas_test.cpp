#include "app/screen/damage.hpp"

#include <epoxy/gl.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/support/gl_context.hpp"

namespace app::render {
namespace {

constexpr Rgb red = rgb(0xff0000), blue = rgb(0x0000ff);

/// What the window shows there, counted from its lower edge as OpenGL does.
Rgb on_window(int x, int y) {
  std::array<std::uint8_t, 4> rgba{};
  glReadPixels(x, y, 1, 1, GL_RGBA, GL_UNSIGNED_BYTE, rgba.data());
  return {rgba[0], rgba[1], rgba[2]};
}

TEST(Canvas, StandsOnTheWindowWithItsFirstRowAtTheTop) {
  const support::GlContext context;
  std::array<GLint, 4> view{};
  glGetIntegerv(GL_VIEWPORT, view.data());
  const int width = view[2], height = view[3];
  Canvas canvas;
  EXPECT_FALSE(canvas.fit(width, height));
  const Area all{0, 0, width, height}, corner{0, 0, 5, 3};
  canvas.begin({&all, 1}, 1, blue);
  canvas.begin({&corner, 1}, 1, red);
  const auto pixels = canvas.pixels();
  EXPECT_EQ(pixels.at(0), 255) << "red at the beginning";
  EXPECT_EQ(pixels.at(pixels.size() - 2), 255) << "blue at the end";
  canvas.put_on_window();
  EXPECT_EQ(on_window(0, height - 1), red);
  EXPECT_EQ(on_window(4, height - 3), red);
  EXPECT_EQ(on_window(5, height - 1), blue);
  EXPECT_EQ(on_window(0, height - 4), blue);
  EXPECT_EQ(on_window(0, 0), blue);
}

}  // namespace
}  // namespace app::render
