#pragma once

#include <array>
#include <cstddef>

#include "core/colour/rgb.hpp"

namespace core::colour {

/// The colours of a theme by role; colour belongs to the data, the rest is grey.
struct Palette {
  bool dark = true;
  Rgb background, panel, raised;
  Rgb frame, frame_hovered, frame_active;
  Rgb line, strong_line;
  Rgb text, dim, faint;
  Rgb accent, selection, selection_inner, operand;
  Rgb warning, bad, good;
  Rgb hatch, hatch_ground;
  std::array<Rgb, 8> heads;  ///< of heads beside each other, again from the first after the last

  Rgb head(std::size_t h) const { return heads[h % heads.size()]; }
};

/// The dark or the light palette.
const Palette& palette(bool dark);

}  // namespace core::colour
