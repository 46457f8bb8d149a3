#pragma once

#include <set>
#include <string>
#include <vector>

namespace core::fonts {

/// A system font, and the wanted characters that it is used for.
struct Font {
  std::string path, family;
  int index = 0;  ///< of the font in its file
  std::set<char32_t> characters;
};

/// Returns the file of the installed font most similar to a family, or "". The first call reads the
/// configuration of all fonts.
std::string find_font_file(const std::string& family);

/// Returns installed outline fonts that cover as many of these characters as possible: first the family
/// itself, then few others, chosen by fontconfig.
std::vector<Font> find_covering_fonts(const std::string& family, std::set<char32_t> characters);

/// Returns "no installed font has 我 (U+6211) and 2 more; install fonts-noto-cjk", with the Debian packages
/// that have the characters; "" if there are none.
std::string missing_characters_message(const std::set<char32_t>& characters);

}  // namespace core::fonts
