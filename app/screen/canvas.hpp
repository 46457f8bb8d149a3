#pragma once

#include <imgui.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "app/screen/damage.hpp"
#include "app/theme/theme.hpp"

namespace app::render {

/// What the window shows, kept from frame to frame so that only what changed is drawn anew.
///
/// Its first row is the top one, as windows have it and textures usually not: then putting it there is a
/// plain copy. It needs a current context from its first use to its destruction.
class Canvas {
 public:
  Canvas();
  ~Canvas();
  Canvas(const Canvas&) = delete;
  Canvas& operator=(const Canvas&) = delete;

  /// Takes a size in pixels; false when that is another one, and nothing is kept.
  bool fit(int width, int height);
  /// What is drawn from now on goes here, with the top row at OpenGL's lower edge; fills areas with one
  /// color, scale pixels for each of their lengths.
  void begin(std::span<const Area> areas, float scale, Rgb color);
  /// Puts all of it on the window, whose own surface is drawn on from now on.
  void put_on_window();
  /// Its pixels, 4 bytes each (red, green, blue, 255), top row first.
  std::vector<std::uint8_t> pixels() const;

 private:
  struct Surface;
  std::unique_ptr<Surface> surface_;
  int width_ = 0, height_ = 0;
};

/// Turns upside down what ImGui's backend will draw, so that it comes to a canvas as it should.
void turn_over(ImDrawData& data);

}  // namespace app::render
