#pragma once

#include <imgui.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace app {

/// One colour, 8 bits a channel.
struct Rgb {
  std::uint8_t r = 0, g = 0, b = 0;
  friend bool operator==(const Rgb&, const Rgb&) = default;
};

/// 0xRRGGBB as it is written in style sheets.
constexpr Rgb rgb(std::uint32_t hex) {
  return {static_cast<std::uint8_t>(hex >> 16), static_cast<std::uint8_t>(hex >> 8), static_cast<std::uint8_t>(hex)};
}

/// For ImGui's draw lists; alpha 0 … 1.
ImU32 packed(Rgb colour, float alpha = 1);
/// For ImGui's style.
ImVec4 vec(Rgb colour, float alpha = 1);
/// share of a, the rest b; share 0 … 1.
Rgb mix(Rgb a, Rgb b, float share);
/// Of the two number colours the one that contrasts more with the ground (relative luminance, WCAG 2).
Rgb readable_on(Rgb ground);

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

/// Lengths at display scale 1 for the two densities of the window.
struct Metrics {
  float scale = 1;     ///< of the display; every length below is already multiplied by it
  bool compact = false;  ///< narrower than 1400 or lower than 900 pixels at scale 1
  float left = 296, right = 332, padding = 16, pitch = 29;
  float menu = 28, status = 28, tabs = 36, frame = 24;
  /// A length of THEME at scale 1, in pixels.
  float px(float length) const;
};

/// The lengths for a window of that size in pixels.
Metrics metrics(ImVec2 window, float scale);

/// Every font the window uses: a size is the height in pixels, each its own atlas entry.
struct Fonts {
  ImFont *sans12 = nullptr, *sans13 = nullptr, *sans14 = nullptr, *sans15 = nullptr, *sans16 = nullptr, *sans17 = nullptr,
         *sans19 = nullptr;
  ImFont *mono12 = nullptr, *mono13 = nullptr, *mono14 = nullptr, *mono32 = nullptr;
};

/// Puts a palette and the lengths into ImGui's style.
void apply_style(const Palette& palette, const Metrics& metrics);

}  // namespace app
