#include "core/system/fonts.hpp"

#include <fmt/core.h>
#include <fontconfig/fontconfig.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>

#include "core/base/utf8.hpp"

namespace core::fonts {

namespace {

using Pattern = std::unique_ptr<FcPattern, void (*)(FcPattern*)>;

Pattern pattern() {
  return {FcPatternCreate(), FcPatternDestroy};
}

void add_family(FcPattern* wanted, const std::string& family) {
  FcPatternAddString(wanted, FC_FAMILY, reinterpret_cast<const FcChar8*>(family.c_str()));
}

/// Returns the installed font that fontconfig finds most similar to the wanted one, or nothing.
Pattern match_of(const Pattern& wanted) {
  if (!wanted) return pattern();
  FcConfigSubstitute(nullptr, wanted.get(), FcMatchPattern);
  FcDefaultSubstitute(wanted.get());
  FcResult result = FcResultNoMatch;
  return {FcFontMatch(nullptr, wanted.get(), &result), FcPatternDestroy};
}

std::string string_property(const Pattern& font, const char* what) {
  FcChar8* text = nullptr;
  if (!font || FcPatternGetString(font.get(), what, 0, &text) != FcResultMatch) return "";
  return reinterpret_cast<const char*>(text);
}

/// Returns the monochrome outline font with most of the characters, of a family if one is given.
Font best_font(const std::optional<std::string>& family, const std::set<char32_t>& characters) {
  const Pattern wanted = pattern();
  const std::unique_ptr<FcCharSet, void (*)(FcCharSet*)> set(FcCharSetCreate(), FcCharSetDestroy);
  if (!wanted || !set) return {};
  if (family) {
    add_family(wanted.get(), *family);
  } else {
    for (const char32_t c : characters) FcCharSetAddChar(set.get(), c);
    FcPatternAddCharSet(wanted.get(), FC_CHARSET, set.get());
  }
  FcPatternAddBool(wanted.get(), FC_SCALABLE, FcTrue);
  FcPatternAddBool(wanted.get(), FC_COLOR, FcFalse);
  const Pattern match = match_of(wanted);
  Font font{string_property(match, FC_FILE), string_property(match, FC_FAMILY), 0, {}};
  FcCharSet* has = nullptr;
  FcBool colored = FcFalse, scalable = FcTrue;
  if (font.path.empty() || FcPatternGetCharSet(match.get(), FC_CHARSET, 0, &has) != FcResultMatch) return {};
  FcPatternGetInteger(match.get(), FC_INDEX, 0, &font.index);
  FcPatternGetBool(match.get(), FC_COLOR, 0, &colored);
  FcPatternGetBool(match.get(), FC_SCALABLE, 0, &scalable);
  if (colored || !scalable || (family && font.family != *family)) return {};
  std::ranges::copy_if(characters, std::inserter(font.characters, font.characters.end()),
                       [&](char32_t c) { return FcCharSetHasChar(has, c); });
  return font;
}

/// Returns the Debian package with a font of the character.
const char* package_of(char32_t c) {
  const auto within = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  if (within(0x1100, 0x11ff) || within(0x2e80, 0x9fff) || within(0xa960, 0xa97f) || within(0xac00, 0xd7ff) ||
      within(0xf900, 0xfaff) || within(0xfe30, 0xfe4f) || within(0xff00, 0xffef) || within(0x20000, 0x3ffff))
    return "fonts-noto-cjk";
  if (within(0x2190, 0x2bff) || within(0x1f000, 0x1faff)) return "fonts-symbola";
  return "fonts-noto-core";
}

}  // namespace

std::string find_font_file(const std::string& family) {
  const Pattern wanted = pattern();
  if (wanted) add_family(wanted.get(), family);
  return string_property(match_of(wanted), FC_FILE);
}

std::vector<Font> find_covering_fonts(const std::string& family, std::set<char32_t> characters) {
  std::vector<Font> fonts;
  for (std::optional<std::string> named = family; !characters.empty(); named.reset()) {
    Font font = best_font(named, characters);
    for (const char32_t c : font.characters) characters.erase(c);
    const bool helps = !font.characters.empty();
    if (helps) fonts.push_back(std::move(font));
    if (!helps && !named) break;
  }
  return fonts;
}

std::string missing_characters_message(const std::set<char32_t>& characters) {
  if (characters.empty()) return "";
  std::string first;
  text::append_character(first, *characters.begin());
  std::string words =
      "no installed font has " + first + " (" + text::code_point_name(*characters.begin()) + ")";
  if (characters.size() > 1) words += fmt::format(" and {} more", characters.size() - 1);
  std::set<std::string> packages;
  for (const char32_t c : characters) packages.insert(package_of(c));
  std::string list;
  for (const std::string& package : packages) list += (list.empty() ? "" : " ") + package;
  return words + "; install " + list;
}

}  // namespace core::fonts
