#pragma once

#include <imgui.h>

#include <string>

#include "app/theme.hpp"

namespace app::platform {

/// The fonts of an atlas and what went wrong with them.
struct LoadedFonts {
  Fonts fonts;
  float scale = 0;      ///< that they were loaded for
  std::string warning;  ///< one line, or "" when DejaVu was found
};

/// How many signs to load: all take ten times as long as those of the first frame.
enum class Glyphs { first, all };

/// Builds an atlas anew for a display scale; ImGui's own between frames, and then Window::refresh_fonts().
LoadedFonts load_fonts(ImFontAtlas& atlas, float scale, Glyphs glyphs = Glyphs::all);

}  // namespace app::platform
