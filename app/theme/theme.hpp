#pragma once

#include <imgui.h>

#include <set>

#include "core/base/color.hpp"

namespace app {

using core::color::mix;
using core::color::Palette;
using core::color::palette;
using core::color::readable_on;
using core::color::Rgb;
using core::color::rgb;

/// Returns a color for ImGui's draw lists; alpha 0 … 1.
ImU32 packed(Rgb color, float alpha = 1);
/// Returns a color for ImGui's style; alpha 0 … 1.
ImVec4 vec(Rgb color, float alpha = 1);

/// Lengths for the two densities of the window; the defaults are at display scale 1.
struct Metrics {
  float scale = 1;       ///< of the display; metrics() multiplies every length below by it
  bool compact = false;  ///< narrower than 1400 or lower than 900 pixels at scale 1
  bool narrow = false;   ///< narrower than 1100 pixels at scale 1: the inspector shares the place of EDIT
  float left = 296, right = 332, padding = 16, center_padding = 20, pitch = 29;
  float menu = 28, status = 28, tabs = 36, frame = 24;
  /// Returns a length at scale 1 in pixels, rounded.
  float px(float length) const;
};

/// Returns the lengths for a window of that size in pixels.
Metrics metrics(ImVec2 window, float scale);

/// Returns the scale at which a window of that size is legible from the last row; it grows with the window.
float presenting_scale(ImVec2 window);

/// Fonts of the window, each with its own atlas entry; a number is the height in pixels at scale 1.
struct Fonts {
  ImFont *sans12 = nullptr, *sans13 = nullptr, *sans14 = nullptr, *sans15 = nullptr, *sans16 = nullptr,
         *sans17 = nullptr, *sans19 = nullptr, *sans24 = nullptr;
  ImFont *mono11 = nullptr, *mono12 = nullptr, *mono13 = nullptr, *mono14 = nullptr, *mono32 = nullptr;
  ImFont *mono18 = nullptr, *mono24 = nullptr;  ///< of large cells
};

/// Characters beyond those that are always loaded. Dear ImGui's user data points to it, so that any code that
/// draws text can request them.
struct GlyphRequests {
  std::set<char32_t> wanted;   ///< drawn so far
  std::set<char32_t> missing;  ///< the subset that no installed font has, or that Dear ImGui cannot hold
};

/// Sets a palette and the lengths in ImGui's style.
void apply_style(const Palette& palette, const Metrics& metrics);

}  // namespace app
