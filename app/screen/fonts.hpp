#pragma once

#include <imgui.h>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/session/jobs.hpp"
#include "app/theme/theme.hpp"

namespace app::platform {

/// The fonts of an atlas and what went wrong with them.
struct LoadedFonts {
  Fonts fonts;
  std::set<char32_t> missing;  ///< wanted, and no installed font has them
  std::string warning;         ///< one line, or "" when DejaVu and all that was wanted were found
  std::vector<std::vector<ImWchar>> ranges;  ///< Dear ImGui keeps pointers to them
};

/// How many signs to load: all take ten times as long as those of the first frame.
enum class Glyphs { first, all };

/// Builds an atlas for a display scale, with the wanted characters from whichever fonts have them.
LoadedFonts load_fonts(ImFontAtlas& atlas, float scale, Glyphs glyphs = Glyphs::all,
                       const std::set<char32_t>& wanted = {});

/// The window's fonts: those of its first frame are loaded while the display opens it, the others in the
/// background.
class FontLoader {
 public:
  /// Begins to load the first ones for that scale; there need not be a context of ImGui.
  FontLoader(Jobs& jobs, float scale);

  /// For ImGui's context, which ends first: waits until the first ones are there. nullptr when ImGui is to
  /// make its own atlas.
  ImFontAtlas* first_atlas();

  /// Between frames: gives ImGui the fonts of that scale, the first ones at once, the others when they are
  /// there, and those of characters that were drawn in vain; whether it has others now.
  bool follow(float scale);

  /// Before ImGui's context ends: waits for what is being loaded, as ImGui counts in its context what it
  /// allocates, in any thread.
  void stop() { queue_.wait(); }

  bool is_loading() const { return now_.glyphs != Glyphs::all || now_.wanted != characters_.wanted; }
  const LoadedFonts& fonts() const { return now_.fonts; }
  Characters& characters() { return characters_; }

 private:
  struct Set {
    std::unique_ptr<ImFontAtlas> atlas;
    LoadedFonts fonts;
    Glyphs glyphs = Glyphs::first;
    float scale = 0;
    std::set<char32_t> wanted;
  };
  static Set load(float scale, Glyphs glyphs, std::set<char32_t> wanted = {});
  void begin(float scale, Glyphs glyphs);
  void take(Set set);

  Characters characters_;
  std::string said_;  // the last warning, which is not repeated
  Set now_;
  std::optional<Set> coming_;  // that were loaded
  JobQueue queue_;
};

}  // namespace app::platform
