// The one font of sentences that a page brings, where Debian has it.
#include <ft2build.h>
#include FT_FREETYPE_H

#include <fmt/core.h>
#include <algorithm>
#include <iterator>
#include <memory>
#include <type_traits>

#include "core/base/utf8.hpp"
#include "core/system/fonts.hpp"

namespace core::fonts {
namespace {

constexpr const char* path = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";

}  // namespace

std::string find_font_file(const std::string&) {
  return path;
}

std::vector<Font> find_covering_fonts(const std::string&, std::set<char32_t> characters) {
  FT_Library opened = nullptr;
  if (FT_Init_FreeType(&opened) != 0) return {};
  const std::unique_ptr<std::remove_pointer_t<FT_Library>, FT_Error (*)(FT_Library)> library(
      opened, FT_Done_FreeType);
  FT_Face face = nullptr;  // ends with the library
  if (FT_New_Face(library.get(), path, 0, &face) != 0) return {};
  Font font{path, "DejaVu Sans", 0, {}};
  std::ranges::copy_if(characters, std::inserter(font.characters, font.characters.end()),
                       [face](char32_t c) { return FT_Get_Char_Index(face, c) != 0; });
  return font.characters.empty() ? std::vector<Font>() : std::vector{font};
}

std::string missing_characters_message(const std::set<char32_t>& characters) {
  if (characters.empty()) return "";
  std::string first;
  text::append_character(first, *characters.begin());
  return "the font of this page lacks " + first + " (" + text::code_point_name(*characters.begin()) + ")" +
         (characters.size() > 1 ? fmt::format(" and {} more", characters.size() - 1) : "");
}

}  // namespace core::fonts
