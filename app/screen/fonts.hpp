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

/// Fonts of an atlas, and problems with them.
struct LoadedFonts {
  Fonts fonts;
  std::set<char32_t> missing;  ///< wanted characters that no installed font has
  std::string warning;         ///< one line, or "" if DejaVu and all wanted characters were found
  std::vector<std::vector<ImWchar>> ranges;  ///< Dear ImGui keeps pointers to them
};

/// How many glyphs to load; all take ten times as long as those of the first frame.
enum class Glyphs { first, all };

/// Builds an atlas for a display scale, with the wanted characters from any fonts that have them.
LoadedFonts load_fonts(ImFontAtlas& atlas, float scale, Glyphs glyphs = Glyphs::all,
                       const std::set<char32_t>& wanted = {});

/// The window's fonts: those of its first frame are loaded while the window opens, the others in the
/// background.
class FontLoader {
 public:
  /// Starts loading the first fonts for this scale; needs no ImGui context.
  FontLoader(Jobs& jobs, float scale);

  /// Waits for the first fonts and returns their atlas for ImGui's context, which must end first; nullptr if
  /// ImGui makes its own atlas.
  ImFontAtlas* first_atlas();

  /// Gives ImGui the fonts of this scale, between frames: the first ones at once, the others when they are
  /// loaded, with characters that were drawn but missing; returns whether the fonts changed.
  bool update(float scale);

  /// Waits for fonts that are loading; must be called before ImGui's context ends, because ImGui counts
  /// allocations of all threads in its context.
  void stop() { queue_.wait(); }

  bool is_loading() const { return current_.glyphs != Glyphs::all || current_.wanted != characters_.wanted; }
  const LoadedFonts& fonts() const { return current_.fonts; }
  GlyphRequests& characters() { return characters_; }

 private:
  struct FontSet {
    std::unique_ptr<ImFontAtlas> atlas;
    LoadedFonts fonts;
    Glyphs glyphs = Glyphs::first;
    float scale = 0;
    std::set<char32_t> wanted;
  };
  static FontSet load(float scale, Glyphs glyphs, std::set<char32_t> wanted = {});
  void begin(float scale, Glyphs glyphs);
  void install(FontSet set);

  GlyphRequests characters_;
  std::string last_warning_;  // the last warning, which is not repeated
  FontSet current_;
  std::optional<FontSet> next_;  // loaded, not in use yet
  JobQueue queue_;
};

}  // namespace app::platform
