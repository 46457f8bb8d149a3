#pragma once

#include <array>
#include <cstddef>

#include "core/base/rgb.hpp"

namespace core::colour {

/// The colours of a theme by role; colour belongs to the data, the rest is grey.
struct Palette {
  struct Ground {
    Rgb back, panel, raised;
  };
  struct Control {
    Rgb rest, hovered, active;
  };
  struct Status {
    Rgb warning, bad, good;
  };
  struct Hatch {
    Rgb lines, ground;
  };

  bool dark = true;
  Ground ground;
  Control control;
  Rgb line, strong_line;
  Rgb text, dim, faint;
  Rgb accent, selection, selection_inner, operand;
  Status status;
  Hatch hatch;
  /// Of heads beside each other, again from the first after the last; each far from all others.
  std::array<Rgb, 32> heads;

  Rgb head(std::size_t h) const { return heads[h % heads.size()]; }
};

/// The dark or the light palette.
const Palette& palette(bool dark);

}  // namespace core::colour
