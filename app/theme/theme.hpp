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

/// For ImGui's draw lists; alpha 0 … 1.
ImU32 packed(Rgb color, float alpha = 1);
/// For ImGui's style.
ImVec4 vec(Rgb color, float alpha = 1);

/// Lengths at display scale 1 for the two densities of the window.
struct Metrics {
  float scale = 1;       ///< of the display; every length below is already multiplied by it
  bool compact = false;  ///< narrower than 1400 or lower than 900 pixels at scale 1
  bool narrow = false;   ///< narrower than 1100 pixels at scale 1: the inspector stands under EDIT
  float left = 296, right = 332, padding = 16, centre_padding = 20, pitch = 29;
  float menu = 28, status = 28, tabs = 36, frame = 24;
  /// A length of THEME at scale 1, in pixels.
  float px(float length) const;
};

/// The lengths for a window of that size in pixels.
Metrics metrics(ImVec2 window, float scale);

/// The scale at which a window of that size is read from the last row: it follows the height.
float presenting_scale(ImVec2 window);

/// Every font the window uses: a size is the height in pixels, each its own atlas entry.
struct Fonts {
  ImFont *sans12 = nullptr, *sans13 = nullptr, *sans14 = nullptr, *sans15 = nullptr, *sans16 = nullptr,
         *sans17 = nullptr, *sans19 = nullptr;
  ImFont *mono12 = nullptr, *mono13 = nullptr, *mono14 = nullptr, *mono32 = nullptr;
  ImFont *mono18 = nullptr, *mono24 = nullptr;  ///< of large cells
};

/// Characters beyond those that are always loaded. Dear ImGui's user data leads to it, so that whatever draws
/// text can ask for them.
struct Characters {
  std::set<char32_t> wanted;   ///< drawn so far
  std::set<char32_t> missing;  ///< of them: no installed font has it, or Dear ImGui cannot hold it
};

/// Puts a palette and the lengths into ImGui's style.
void apply_style(const Palette& palette, const Metrics& metrics);

}  // namespace app
