#pragma once

#include <string>

#include "app/theme.hpp"

namespace app::platform {

/// The window's fonts and what went wrong with them.
struct LoadedFonts {
  Fonts fonts;
  std::string warning;  ///< one line, or "" when DejaVu was found
};

/// How many signs to load: all take ten times as long as those of the first frame.
enum class Glyphs { first, all };

/// Builds ImGui's atlas anew for a display scale; may be called again between frames, then
/// Window::refresh_fonts().
LoadedFonts load_fonts(float scale, Glyphs glyphs = Glyphs::all);

}  // namespace app::platform
