#pragma once

#include <imgui.h>

#include <array>
#include <map>
#include <string>
#include <vector>

namespace support {

/// Run of letters drawn by ImGui, read back from its triangles.
struct DrawnText {
  std::string text;
  ImVec2 min, max;      ///< of the ink
  float size = 0;       ///< of its font, in pixels
  bool mono = false;    ///< the font is monospaced
  bool turned = false;  ///< rotated by 90°
  ImVec4 clip;          ///< clip rectangle on the screen
};

/// Reads texts back from ImGui's triangles while the fonts stay the same.
class TextReader {
 public:
  TextReader();
  /// Returns all texts of the last frame. In monospaced fonts each word is a text; in others, up to two
  /// spaces join words.
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

  std::map<std::array<float, 4>, Letter> letters_;  ///< by texture coordinates in the atlas
};

/// Returns the texts of the last frame that lie within a rectangle.
std::vector<std::string> texts_within(ImVec2 min, ImVec2 max);

}  // namespace support
