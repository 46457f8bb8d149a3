#pragma once

#include <set>
#include <string>
#include <vector>

namespace core::fonts {

/// A font of the system, and those of the wanted characters that it is to draw.
struct Font {
  std::string path, family;
  int index = 0;  ///< of the font in its file
  std::set<char32_t> characters;
};

/// Returns the file of the installed font that is most like a family, or "". The first call reads the
/// configuration of all fonts.
std::string file_like(const std::string& family);

/// Returns installed outline fonts that have as many of these characters as any have: the family itself as
/// far as it goes, then few others, by fontconfig.
std::vector<Font> fonts_with(const std::string& family, std::set<char32_t> characters);

/// Returns "no installed font has 我 (U+6211) and 2 more; install fonts-noto-cjk", with the Debian packages
/// that have the characters; "" without any.
std::string missing_words(const std::set<char32_t>& characters);

}  // namespace core::fonts
