#pragma once

#include <imgui.h>

#include <array>
#include <map>
#include <string>
#include <vector>

namespace support {

/// A run of letters that ImGui was told to draw, read back from its triangles.
struct DrawnText {
  std::string text;
  ImVec2 min, max;      ///< of the ink
  float size = 0;       ///< of its font, in pixels
  bool mono = false;    ///< all letters of its font are of one width
  bool turned = false;  ///< by a quarter
  ImVec4 clip;          ///< what of the screen it may be seen in
};

/// Reads texts back from ImGui's triangles, for as long as the fonts are the same.
class TextReader {
 public:
  TextReader();
  /// All texts of the last frame. Words of a font with one width are apart, others are as long as blanks
  /// allow.
  std::vector<DrawnText> texts();

 private:
  struct Letter {
    ImFont* font;
    ImFontGlyph glyph;
    bool mono;
  };
  struct Growing;
  void read_letters();
  void read_command(const ImDrawList& list, const ImDrawCmd& cmd, std::vector<Growing>& texts) const;

  std::map<std::array<float, 4>, Letter> letters_;  ///< by their place in the atlas
};

}  // namespace support
