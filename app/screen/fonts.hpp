#pragma once

#include <imgui.h>
#include <memory>
#include <optional>
#include <string>

#include "app/session/jobs.hpp"
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

/// The window's fonts: those of its first frame are loaded while the display opens it, the others beside it.
class FontLoader {
 public:
  /// Begins to load the first ones for that scale; there need not be a context of ImGui.
  FontLoader(Jobs& jobs, float scale);

  /// For ImGui's context, which ends first: waits until the first ones are there. nullptr when ImGui is to
  /// make its own atlas.
  ImFontAtlas* first_atlas();

  /// Between frames: gives ImGui the fonts of that scale, the first ones at once, the others when they are
  /// there; whether it has others now.
  bool follow(float scale);

  /// Before ImGui's context ends: waits for what is being loaded, as ImGui counts in its context what it
  /// allocates, in any thread.
  void stop() { lane_.wait(); }

  bool is_loading() const { return now_.glyphs != Glyphs::all; }
  const LoadedFonts& fonts() const { return now_.fonts; }

 private:
  struct Set {
    std::unique_ptr<ImFontAtlas> atlas;
    LoadedFonts fonts;
    Glyphs glyphs = Glyphs::first;
    float scale = 0;
  };
  static Set load(float scale, Glyphs glyphs);
  void begin(float scale, Glyphs glyphs);

  Set now_;
  std::optional<Set> coming_;  // that were loaded
  JobQueue lane_;
};

}  // namespace app::platform
