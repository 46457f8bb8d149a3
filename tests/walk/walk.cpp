#include "tests/walk/walk.hpp"

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "core/system/process.hpp"
#include "tests/support/loaded_drivers.hpp"
#include "tests/support/look.hpp"
#include "tests/support/waiting.hpp"

namespace walk {
namespace {

app::Rgb pixel_of(const app::platform::RgbaImage& image, int x, int y) {
  if (x < 0 || y < 0 || x >= image.width || y >= image.height) throw std::out_of_range("no such pixel");
  const auto at =
      (static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width) + static_cast<std::size_t>(x)) * 4;
  return {image.rgba[at], image.rgba[at + 1], image.rgba[at + 2]};
}

}  // namespace

Walk::Walk(int width, int height, double max_immediate_ms, app::Loop::DrawFunction draw)
    : store(core::system::available_memory, max_immediate_ms),
      window(store.jobs(), "attnscope", width, height),
      loop(window, renderer, store, std::move(draw)) {
  while (window.wait(0.02)) {  // events of a new window
  }
  support::look(store, [](app::View& view) { view.settings.reduce_motion = true; });
  held_.mouse = ImVec2(-1, -1);
  held_.left = held_.right = false;
  run(3);
  support::keep_drivers_loaded();
  while (window.is_loading_fonts()) run(1);
}

void Walk::frame(const support::InputFrame& input) {
  support::finish_reading(store);
  if (input.mouse) held_.mouse = input.mouse;
  if (input.left) held_.left = input.left;
  if (input.right) held_.right = input.right;
  support::InputFrame now = input;
  now.mouse = held_.mouse, now.left = held_.left, now.right = held_.right;
  std::vector<app::KeyPress> keys;
  if (input.key) keys.push_back(*input.key);
  loop.frame(
      [&](ImGuiIO& io) {
        support::put(now, io);
        // Letters made on first use would be made for that scale.
        if (!sharp && !app::platform::rasterizes_on_demand) io.DisplayFramebufferScale = {0.05f, 0.05f};
      },
      keys);
}

void Walk::ask_to_close() {
  window.request_close();
  loop.step();
  run();
}

double Walk::weight(std::size_t row, std::size_t column) const {
  return store.live().trace().at(core::attention::Stage::weights, store.view().look.head)(row, column);
}

app::Rgb Walk::pixel(ImVec2 at) {
  return pixel_of(window.read_pixels(), static_cast<int>(at.x), static_cast<int>(at.y));
}

app::Rgb Walk::cell_color(const std::string& map, std::size_t n_rows, std::size_t n_columns, std::size_t row,
                          std::size_t column) {
  const auto rect = landmarks().find(map);
  if (!rect) throw std::runtime_error("nothing on the screen is called " + map);
  const auto along = [](float from, float to, std::size_t n, std::size_t i) {
    return std::round(from + (to - from) * static_cast<float>(i) / static_cast<float>(n)) + 3;
  };
  return pixel(
      {along(rect->min.x, rect->max.x, n_columns, column), along(rect->min.y, rect->max.y, n_rows, row)});
}

std::vector<app::Rgb> Walk::pixels(const std::string& name) {
  const auto rect = landmarks().find(name);
  if (!rect) throw std::runtime_error("nothing on the screen is called " + name);
  const app::platform::RgbaImage image = window.read_pixels();
  std::vector<app::Rgb> found;
  for (int y = static_cast<int>(rect->min.y); y < static_cast<int>(rect->max.y); ++y)
    for (int x = static_cast<int>(rect->min.x); x < static_cast<int>(rect->max.x); ++x)
      found.push_back(pixel_of(image, x, y));
  return found;
}

bool alike(app::Rgb a, app::Rgb b) {
  return std::abs(a.r - b.r) <= 2 && std::abs(a.g - b.g) <= 2 && std::abs(a.b - b.b) <= 2;
}

}  // namespace walk
