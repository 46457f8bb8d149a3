#pragma once

#include <imgui.h>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "app/theme/theme.hpp"

namespace app::render {

/// A rectangle on the screen, in ImGui's coordinates, without its right and lower edge.
struct Area {
  int left = 0, top = 0, right = 0, bottom = 0;
  friend bool operator==(const Area&, const Area&) = default;
};

/// The cells of a grid that are set, as no more than so many areas, with few others: those side by side
/// become one area, and such areas one above the other.
std::vector<Area> joined(const std::vector<bool>& grid, int columns, std::size_t most);

/// A part of a texture, as shares of its width and height.
struct Share {
  float left = 0, top = 0, right = 1, bottom = 1;
};

/// Where a frame differs from the one before, found by comparing what is drawn into each tile of the window.
class Damage {
 public:
  static constexpr int tile = 64;  // a multiple of 4, so that every usual scale
                                   // of a display gives whole pixels

  /// Another number for a part of a texture: other pixels in it. 0 for textures that never change.
  using TextureVersion = std::function<std::uint64_t(std::uint64_t texture, const Share& part)>;

  /// Areas that do not overlap, whole tiles within the display; everything at first and after another size.
  std::vector<Area> renew(const ImDrawData& data, const TextureVersion& version);
  /// The next frame differs everywhere.
  void forget() { before_.clear(); }

 private:
  int columns_ = 0, rows_ = 0;
  std::vector<std::uint64_t> before_;  // [row × columns + column]
};

/// Leaves of the draw lists what touches the areas, cut off at their edges; data must have no callbacks.
void keep_within(ImDrawData& data, const std::vector<Area>& areas);

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
