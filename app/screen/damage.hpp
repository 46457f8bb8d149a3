#pragma once

#include <imgui.h>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "app/theme/theme.hpp"

namespace app::render {

/// A rectangle on the screen, in ImGui's coordinates; right and bottom are exclusive.
struct ScreenRect {
  int left = 0, top = 0, right = 0, bottom = 0;
  friend bool operator==(const ScreenRect&, const ScreenRect&) = default;
};

/// Covers the set cells of a grid, and few others, with at most `max_count` areas: adjacent cells of a row
/// become one area, and so do equal areas of adjacent rows.
std::vector<ScreenRect> covering_areas(const std::vector<bool>& grid, int columns, std::size_t max_count);

/// A part of a texture, as fractions of its width and height.
struct UvRect {
  float left = 0, top = 0, right = 1, bottom = 1;
};

/// Differences from the previous frame, found by comparing the draw commands of each tile of the window.
class Damage {
 public:
  static constexpr int tile = 64;  // a multiple of 4, so that every usual scale
                                   // of a display gives whole pixels

  /// Returns the version of a part of a texture, which changes with its pixels; 0 if they never change.
  using TextureVersion = std::function<std::uint64_t(std::uint64_t texture, const UvRect& part)>;

  /// Returns the changed areas: disjoint, whole tiles in the display; everything at first and after a resize.
  std::vector<ScreenRect> update(const ImDrawData& data, const TextureVersion& version);
  /// Makes the next frame differ everywhere.
  void invalidate() { previous_.clear(); }

 private:
  int columns_ = 0, rows_ = 0;
  std::vector<std::uint64_t> previous_;  // [row × columns + column]
};

/// Clips the draw lists to the areas; data must have no callbacks.
void clip_to_areas(ImDrawData& data, const std::vector<ScreenRect>& areas);

/// Image of the window, kept from frame to frame so that only changes are redrawn.
///
/// Its first row is the top one, as in windows and unlike most textures, so that it is shown by a plain copy.
/// It needs a current context from its first use to its destruction.
class Canvas {
 public:
  Canvas();
  ~Canvas();
  Canvas(const Canvas&) = delete;
  Canvas& operator=(const Canvas&) = delete;

  /// Sets the size in pixels; returns false if it changed and the content is lost.
  bool resize(int width, int height);
  /// Directs drawing to the canvas, with the top row at OpenGL's lower edge, and fills areas with one color;
  /// scale is in pixels per unit of the areas.
  void begin(std::span<const ScreenRect> areas, float scale, Rgb color);
  /// Copies the canvas to the window and directs drawing to the window.
  void copy_to_window();
  /// Draws the areas of a frame on the background color, and copies all to the window. Clips and flips data.
  void draw(ImDrawData& data, const std::vector<ScreenRect>& areas, Rgb background);
  /// Returns the pixels, 4 bytes each (red, green, blue, 255), top row first.
  std::vector<std::uint8_t> pixels() const;

 private:
  struct Surface;
  std::unique_ptr<Surface> surface_;
  int width_ = 0, height_ = 0;
};

/// Flips the draw data vertically, so that ImGui's backend draws it on a canvas correctly.
void flip_vertically(ImDrawData& data);

}  // namespace app::render
