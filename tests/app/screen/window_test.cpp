#include "app/screen/window.hpp"

#include <epoxy/gl.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "app/screen/damage.hpp"
#include "app/screen/fonts.hpp"
#include "app/theme/imgui_compat.hpp"
#include "core/base/error.hpp"
#include "tests/support/imgui_input.hpp"
#include "tests/support/loaded_drivers.hpp"
#include "tests/support/painted.hpp"

namespace {

using namespace app::platform;

class OpenWindow : public testing::Test {
 protected:
  OpenWindow() { support::keep_drivers_loaded(); }
  /// Handles the events of a new window.
  void settle() {
    while (window.wait(0.05)) {
    }
  }
  void show_nothing() {
    jobs.deliver();
    window.begin_frame();
    window.end_frame(app::rgb(0));
  }
  app::Jobs jobs;
  Window window{jobs, "attnscope tests", 960, 600};
};

TEST_F(OpenWindow, ShowsWhatWasDrawnInIt) {
  window.prepare_fonts(1);
  window.begin_frame();
  ImGui::GetForegroundDrawList()->AddRectFilled({100, 50}, {200, 150}, IM_COL32(255, 0, 0, 255));
  window.end_frame(app::rgb(0x123456));
  const RgbaImage image = window.read_pixels();
  ASSERT_GE(image.width, 960);
  ASSERT_EQ(image.rgba.size(),
            static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height) * 4);
  const auto pixel = [&](int x, int y) {
    const auto at = static_cast<std::size_t>(y * image.width + x) * 4;
    return app::Rgb{image.rgba[at], image.rgba[at + 1], image.rgba[at + 2]};
  };
  EXPECT_EQ(pixel(150, 60), app::rgb(0xff0000));
  EXPECT_EQ(pixel(150, 200), app::rgb(0x123456));
}

TEST_F(OpenWindow, ShowsTheSameWhetherAllOrOnlyWhatDiffersIsDrawn) {
  window.prepare_fonts(1);
  const auto draw = [&](int frame) {
    window.begin_frame();
    ImDrawList& list = *ImGui::GetForegroundDrawList();
    list.AddRectFilled({0, 0}, {960, 300}, IM_COL32(0, 0, 255, 255));
    list.AddText({40, 40}, IM_COL32(255, 255, 255, 128), "half transparent words that stay");
    list.AddCircleFilled({100.0f + 37 * static_cast<float>(frame), 60}, 30, IM_COL32(255, 0, 0, 90));
    list.AddLine({10, 500}, {900.0f - 50 * static_cast<float>(frame), 320}, IM_COL32(0, 255, 0, 128), 3);
    window.end_frame(app::rgb(0x123456));
  };
  for (int frame = 0; frame < 6; ++frame) draw(frame);
  const RgbaImage by_parts = window.read_pixels();
  window.invalidate_frame();  // so that everything is redrawn
  draw(5);
  EXPECT_EQ(by_parts.rgba, window.read_pixels().rgba);
}

TEST_F(OpenWindow, WaitsUntilItIsWoken) {
  settle();
  EXPECT_FALSE(window.wait(0.01)) << "nothing happens";
  EXPECT_TRUE(window.take_keys().empty());
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    window.wake();
  });
  const auto start = std::chrono::steady_clock::now();
  bool woken = false;
  while (!woken && std::chrono::steady_clock::now() - start < std::chrono::seconds(5)) woken = window.wait(5);
  EXPECT_TRUE(woken);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4));
  other.join();
}

TEST_F(OpenWindow, HasTheFirstGlyphsAtOnceAndTheOthersSoon) {
  const auto has = [&](ImWchar sign) {
    return app::platform::glyphs_of(window.fonts().fonts.sans14)->FindGlyphNoFallback(sign) != nullptr;
  };
#if IMGUI_VERSION_NUM < 19200
  EXPECT_FALSE(window.prepare_fonts(1));  // loaded while the window was opened
  EXPECT_TRUE(has('a'));
  EXPECT_TRUE(window.is_loading_fonts());
  while (!window.prepare_fonts(1)) show_nothing();
#else
  EXPECT_TRUE(window.prepare_fonts(1));  // each glyph is made on first use
#endif
  EXPECT_TRUE(has('a'));
  EXPECT_TRUE(has(0x416));
  EXPECT_FALSE(window.is_loading_fonts());
  EXPECT_FALSE(window.prepare_fonts(1));
  show_nothing();
}

TEST_F(OpenWindow, LoadsFontsAnewForAnotherScale) {
  window.prepare_fonts(1);
  EXPECT_EQ(app::platform::font_size(window.fonts().fonts.sans14), 14);
  show_nothing();
  EXPECT_TRUE(window.prepare_fonts(1.5));  // fonts of scale 1 may still be loading, and are discarded
  EXPECT_EQ(app::platform::font_size(window.fonts().fonts.mono32), 48);
  while (window.is_loading_fonts()) {
    show_nothing();
    window.prepare_fonts(1.5);
    EXPECT_EQ(app::platform::font_size(window.fonts().fonts.mono32), 48);
  }
  EXPECT_NE(app::platform::glyphs_of(window.fonts().fonts.sans14)->FindGlyphNoFallback(0x416), nullptr);
  show_nothing();
}

TEST(Fonts, HaveEverySignOfTheFormulas) {
  ImFontAtlas atlas;
  const LoadedFonts loaded = load_fonts(atlas, 1);
  ASSERT_EQ(loaded.warning, "");
  const app::Fonts& f = loaded.fonts;
  for (const ImWchar sign : {0x221a, 0x1d40, 0xb7, 0x2212, 0x221e, 0x3a3, 0x3b1, 0x2208, 0x211d, 0x2c, 0x1d48,
                             0x2096, 0x2264, 0xd7, 0x2192, 0x27e8, 0x2016}) {
    for (ImFont* font : {f.sans12, f.sans13, f.sans14, f.sans15, f.sans16, f.sans17, f.sans19, f.sans24})
      EXPECT_NE(app::platform::glyphs_of(font)->FindGlyphNoFallback(sign), nullptr)
          << std::hex << sign << " at " << app::platform::font_size(font);
  }
  for (const ImWchar sign : {0x2212, 0x221e, 0xd7, 0xb7}) {
    for (ImFont* font : {f.mono12, f.mono13, f.mono14, f.mono32})
      EXPECT_NE(app::platform::glyphs_of(font)->FindGlyphNoFallback(sign), nullptr) << std::hex << sign;
  }
  for (const ImWchar letter : {0x416, 0x3c8, 0xe4})
    EXPECT_NE(app::platform::glyphs_of(f.sans13)->FindGlyphNoFallback(letter), nullptr);
}

TEST(NoDisplay, IsSaidInOneLineThatNamesTheWayOut) {
  const std::string display = std::getenv("DISPLAY") ? std::getenv("DISPLAY") : "";
  ::unsetenv("DISPLAY");
  try {
    app::Jobs jobs;
    const Window window(jobs, "attnscope tests", 960, 600);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const core::Error& e) {
    const std::string text = e.what();
    EXPECT_EQ(text,
              "no display: cannot open a window (is DISPLAY set?); `attnscope export` works without one");
  }
  if (!display.empty()) ::setenv("DISPLAY", display.c_str(), 1);
}

}  // namespace

namespace app::render {
namespace {

constexpr Rgb red = rgb(0xff0000), blue = rgb(0x0000ff);

/// Returns the color of a window pixel, with y from the lower edge as in OpenGL.
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
  EXPECT_FALSE(canvas.resize(width, height));
  const ScreenRect all{0, 0, width, height}, corner{0, 0, 5, 3};
  canvas.begin({&all, 1}, 1, blue);
  canvas.begin({&corner, 1}, 1, red);
  const auto pixels = canvas.pixels();
  EXPECT_EQ(pixels.at(0), 255) << "red at the beginning";
  EXPECT_EQ(pixels.at(pixels.size() - 2), 255) << "blue at the end";
  canvas.copy_to_window();
  EXPECT_EQ(on_window(0, height - 1), red);
  EXPECT_EQ(on_window(4, height - 3), red);
  EXPECT_EQ(on_window(5, height - 1), blue);
  EXPECT_EQ(on_window(0, height - 4), blue);
  EXPECT_EQ(on_window(0, 0), blue);
}

}  // namespace
}  // namespace app::render
