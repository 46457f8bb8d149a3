#pragma once

#include <imgui.h>

#include <string>

#include "app/theme/theme.hpp"

namespace app::platform {

/// The fonts of an atlas and what went wrong with them.
struct LoadedFonts {
  Fonts fonts;
  std::string warning;  ///< one line, or "" when DejaVu was found
};

/// How many signs to load: all take ten times as long as those of the first frame.
enum class Glyphs { first, all };

/// Builds an atlas anew for a display scale.
LoadedFonts load_fonts(ImFontAtlas& atlas, float scale, Glyphs glyphs = Glyphs::all);

}  // namespace app::platform
