#include "core/system/fonts.hpp"

#include <fontconfig/fontconfig.h>

#include <algorithm>
#include <iterator>
#include <memory>

#include "core/base/text.hpp"
#include "core/base/utf8.hpp"

namespace core::fonts {

namespace {

using Pattern = std::unique_ptr<FcPattern, void (*)(FcPattern*)>;

/// The outline font without colors that has most of the characters; of that family when one is named.
Font best_font(const char* family, const std::set<char32_t>& characters) {
  const Pattern wanted(FcPatternCreate(), FcPatternDestroy);
  const std::unique_ptr<FcCharSet, void (*)(FcCharSet*)> set(FcCharSetCreate(), FcCharSetDestroy);
  if (!wanted || !set) return {};
  if (family) {
    FcPatternAddString(wanted.get(), FC_FAMILY, reinterpret_cast<const FcChar8*>(family));
  } else {
    for (const char32_t c : characters) FcCharSetAddChar(set.get(), c);
    FcPatternAddCharSet(wanted.get(), FC_CHARSET, set.get());
  }
  FcPatternAddBool(wanted.get(), FC_SCALABLE, FcTrue);
  FcPatternAddBool(wanted.get(), FC_COLOR, FcFalse);
  FcConfigSubstitute(nullptr, wanted.get(), FcMatchPattern);
  FcDefaultSubstitute(wanted.get());
  FcResult result = FcResultNoMatch;
  const Pattern match(FcFontMatch(nullptr, wanted.get(), &result), FcPatternDestroy);
  FcChar8 *path = nullptr, *name = nullptr;
  FcCharSet* has = nullptr;
  FcBool colored = FcFalse, scalable = FcTrue;
  Font font;
  if (!match || FcPatternGetString(match.get(), FC_FILE, 0, &path) != FcResultMatch ||
      FcPatternGetString(match.get(), FC_FAMILY, 0, &name) != FcResultMatch ||
      FcPatternGetCharSet(match.get(), FC_CHARSET, 0, &has) != FcResultMatch)
    return font;
  FcPatternGetInteger(match.get(), FC_INDEX, 0, &font.index);
  FcPatternGetBool(match.get(), FC_COLOR, 0, &colored);
  FcPatternGetBool(match.get(), FC_SCALABLE, 0, &scalable);
  font.path = reinterpret_cast<const char*>(path);
  font.family = reinterpret_cast<const char*>(name);
  if (colored || !scalable || (family && font.family != family)) return font;
  std::ranges::copy_if(characters, std::inserter(font.characters, font.characters.end()),
                       [&](char32_t c) { return FcCharSetHasChar(has, c); });
  return font;
}

/// The Debian package with a font of the character.
const char* package_of(char32_t c) {
  const auto within = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  if (within(0x1100, 0x11ff) || within(0x2e80, 0x9fff) || within(0xa960, 0xa97f) || within(0xac00, 0xd7ff) ||
      within(0xf900, 0xfaff) || within(0xfe30, 0xfe4f) || within(0xff00, 0xffef) || within(0x20000, 0x3ffff))
    return "fonts-noto-cjk";
  if (within(0x2190, 0x2bff) || within(0x1f000, 0x1faff)) return "fonts-symbola";
  return "fonts-noto-core";
}

}  // namespace

std::vector<Font> fonts_with(const std::string& family, std::set<char32_t> characters) {
  std::vector<Font> fonts;
  for (const char* named = family.c_str(); !characters.empty(); named = nullptr) {
    Font font = best_font(named, characters);
    for (const char32_t c : font.characters) characters.erase(c);
    const bool helps = !font.characters.empty();
    if (helps) fonts.push_back(std::move(font));
    if (!helps && !named) break;
  }
  return fonts;
}

std::string missing_words(const std::set<char32_t>& characters) {
  if (characters.empty()) return "";
  std::string first;
  text::append_character(first, *characters.begin());
  std::string words = "no installed font has " + first + " (U+" +
                      text::hexadecimal(*characters.begin(), *characters.begin() > 0xffff ? 5 : 4) + ")";
  if (characters.size() > 1) words += " and " + std::to_string(characters.size() - 1) + " more";
  std::set<std::string> packages;
  for (const char32_t c : characters) packages.insert(package_of(c));
  std::string list;
  for (const std::string& package : packages) list += (list.empty() ? "" : " ") + package;
  return words + "; install " + list;
}

}  // namespace core::fonts
