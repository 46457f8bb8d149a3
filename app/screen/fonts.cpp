#include "app/screen/fonts.hpp"

#include <imgui_freetype.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <tuple>
#include <utility>

#include "app/theme/imgui_compat.hpp"
#include "core/system/file.hpp"
#include "core/system/fonts.hpp"

namespace app::platform {

FontLoader::FontSet FontLoader::load(float scale, Glyphs glyphs, std::set<char32_t> wanted) {
  FontSet set{std::make_unique<ImFontAtlas>(), {}, glyphs, scale, std::move(wanted)};
  set.fonts = load_fonts(*set.atlas, scale, glyphs, set.wanted);
  return set;
}

FontLoader::FontLoader(Jobs& jobs, float scale) : queue_(jobs) {
  if (!rasterizes_on_demand) begin(scale, Glyphs::first);
}

void FontLoader::begin(float scale, Glyphs glyphs) {
  queue_.start([this, scale, glyphs, wanted = characters_.wanted](const core::StopToken&) -> Jobs::Delivery {
    const auto set = std::make_shared<FontSet>(load(scale, glyphs, wanted));
    return [this, set] { next_ = std::move(*set); };
  });
}

ImFontAtlas* FontLoader::first_atlas() {
  queue_.wait();
  queue_.jobs().deliver();
  if (next_) current_ = *std::exchange(next_, std::nullopt);
  return current_.atlas.get();
}

void FontLoader::install(FontSet set) {
  if (set.atlas) ImGui::GetIO().Fonts = set.atlas.get();
  if (set.fonts.warning == last_warning_)
    set.fonts.warning.clear();
  else
    last_warning_ = set.fonts.warning;
  characters_.missing = set.fonts.missing;
  current_ = std::move(set);
}

bool FontLoader::update(float scale) {
  if (rasterizes_on_demand) {
    if (current_.scale == scale && current_.wanted == characters_.wanted) return false;
    const auto& wanted = characters_.wanted;
    install(
        {nullptr, load_fonts(*ImGui::GetIO().Fonts, scale, Glyphs::all, wanted), Glyphs::all, scale, wanted});
    return true;
  }
  const bool changed = current_.scale != scale;
  if (changed) install(load(scale, Glyphs::first));
  if (queue_.is_busy()) return changed;
  if (next_)
    if (FontSet set = *std::exchange(next_, std::nullopt); set.scale == scale)
      return install(std::move(set)), true;
  const bool is_first_frame = ImGui::GetFrameCount() == 0;  // leave the processors to it
  if (is_loading() && !is_first_frame) begin(scale, Glyphs::all);
  return changed;
}

namespace {

// For the user's text: Latin, Greek, Cyrillic, and all symbols of formulas. ImGui keeps pointers to these.
constexpr ImWchar all_ranges[] = {0x0020, 0x017f, 0x0370, 0x045f, 0x1d40, 0x1d7f, 0x2010, 0x2044,
                                  0x2070, 0x209f, 0x2100, 0x214f, 0x2190, 0x22ff, 0x2300, 0x230b,
                                  0x2423, 0x2423, 0x2500, 0x257f, 0x25cf, 0x25cf, 0x2713, 0x2717,
                                  0x27e8, 0x27e9, 0xfffd, 0xfffd, 0};
// For our own text and numbers only, which loads in a fifth of the time.
constexpr ImWchar own_text_ranges[] = {0x0020, 0x00ff, 0x0391, 0x03c9, 0x1d40, 0x1d7f, 0x2010,
                                       0x2026, 0x2070, 0x209f, 0x211d, 0x211d, 0x2190, 0x2193,
                                       0x2200, 0x2265, 0x27e8, 0x27e9, 0xfffd, 0xfffd, 0};

// The minimum for the first frame.
constexpr ImWchar first_frame_ranges[] = {0x0020, 0x007e, 0x00b7, 0x00b7, 0x00d7, 0x00d7, 0x00f7,
                                          0x00f7, 0x03a3, 0x03a3, 0x1d40, 0x1d40, 0x2013, 0x2026,
                                          0x2039, 0x203a, 0x2190, 0x2193, 0x21b5, 0x21bb, 0x2212,
                                          0x221e, 0x2264, 0x2264, 0xfffd, 0xfffd, 0};

std::string find_font(const char* file_name, const char* family) {
  for (const char* directory : {"/usr/share/fonts/truetype/dejavu/", "/usr/share/fonts/dejavu/",
                                "/usr/share/fonts/TTF/", "/usr/share/fonts/dejavu-sans-fonts/"}) {
    const std::string path = std::string(directory) + file_name;
    if (core::system::is_file(path)) return path;
  }
  const std::string other = core::fonts::find_font_file(family);
  const std::string ending = std::filesystem::path(other).extension();
  return ending == ".ttf" || ending == ".otf" ? other : "";
}

ImFontConfig config_of(float pixels) {
  ImFontConfig config;
  config.SizePixels = std::round(pixels);
  config.OversampleH = config.OversampleV = 1;
  config.PixelSnapH = true;
#if IMGUI_VERSION_NUM >= 19200
  config.Flags |= ImFontFlags_NoLoadError;  // missing files are reported here
#endif
  return config;
}

/// Adds one size of a font; ImGui's own font if there is no readable file.
ImFont* add(ImFontAtlas& atlas, const std::string& file, float size, float scale, const ImWchar* ranges) {
  const ImFontConfig config = config_of(size * scale);
  ImFont* font =
      file.empty() ? nullptr : atlas.AddFontFromFileTTF(file.c_str(), config.SizePixels, &config, ranges);
  return font ? font : atlas.AddFontDefault(&config);
}

/// Adds these characters of another font to the font that was added last.
void merge(ImFontAtlas& atlas, const core::fonts::Font& other, float size, float scale,
           const ImWchar* ranges) {
  // Fonts of other scripts have taller lines: at the same height their characters would be smaller.
  constexpr float larger = 1.15f;
  ImFontConfig config = config_of(size * scale * (other.family == "DejaVu Sans" ? 1 : larger));
  config.MergeMode = true;
  config.FontNo = static_cast<unsigned>(other.index & 0xffff);
  atlas.AddFontFromFileTTF(other.path.c_str(), config.SizePixels, &config, ranges);
}

}  // namespace

LoadedFonts load_fonts(ImFontAtlas& atlas, float scale, Glyphs glyphs, const std::set<char32_t>& wanted) {
  atlas.Clear();
  atlas.Flags |= ImFontAtlasFlags_NoPowerOfTwoHeight;
#if __has_include(<imgui_freetype.h>) && IMGUI_VERSION_NUM >= 19200
  atlas.SetFontLoader(ImGuiFreeType::GetFontLoader());
  atlas.FontLoaderFlags = ImGuiFreeTypeLoaderFlags_LightHinting;
#elif __has_include(<imgui_freetype.h>)
  atlas.FontBuilderIO = ImGuiFreeType::GetBuilderForFreeType();
  atlas.FontBuilderFlags = ImGuiFreeTypeBuilderFlags_LightHinting;
#endif
  const std::string sans = find_font("DejaVuSans.ttf", "DejaVu Sans");
  const std::string mono = find_font("DejaVuSansMono.ttf", "DejaVu Sans Mono");
  const ImWchar* all = glyphs == Glyphs::all ? all_ranges : first_frame_ranges;
  const ImWchar* own = glyphs == Glyphs::all ? own_text_ranges : first_frame_ranges;
  LoadedFonts loaded;
  Fonts& f = loaded.fonts;
  std::vector<core::fonts::Font> others;
  if (glyphs == Glyphs::all) {
    std::set<char32_t> supported = wanted;
    std::erase_if(supported, [](char32_t c) { return c > IM_UNICODE_CODEPOINT_MAX; });
    others = core::fonts::find_covering_fonts("DejaVu Sans", supported);
    loaded.missing = wanted;
    for (const core::fonts::Font& other : others) {
      std::vector<ImWchar>& ranges = loaded.ranges.emplace_back();
      for (const char32_t c : other.characters) {
        loaded.missing.erase(c);
        ranges.insert(ranges.end(), 2, static_cast<ImWchar>(c));
      }
      ranges.push_back(0);
    }
  }
  for (const auto& [font, size, ranges] :
       {std::tuple{&f.sans14, 14, all},  // the first one is ImGui's default
        {&f.sans12, 12, all},
        {&f.sans13, 13, all},
        {&f.sans15, 15, all},
        {&f.sans16, 16, all},
        {&f.sans17, 17, own},
        {&f.sans19, 19, own},
        {&f.sans24, 24, own}}) {
    *font = add(atlas, sans, static_cast<float>(size), scale, ranges);
    for (std::size_t k = 0; k < others.size() && ranges == all; ++k)
      merge(atlas, others[k], static_cast<float>(size), scale, loaded.ranges[k].data());
  }
  for (const auto& [font, size] : {std::pair{&f.mono11, 11},
                                   {&f.mono12, 12},
                                   {&f.mono13, 13},
                                   {&f.mono14, 14},
                                   {&f.mono18, 18},
                                   {&f.mono24, 24},
                                   {&f.mono32, 32}})
    *font = add(atlas, mono, static_cast<float>(size), scale, own);
#if IMGUI_VERSION_NUM < 19200
  atlas.Build();
#endif
  if (sans.empty() || mono.empty())
    loaded.warning = "no font was found, so some characters will be missing; install the DejaVu fonts";
  else
    loaded.warning = core::fonts::missing_characters_message(loaded.missing);
  return loaded;
}

}  // namespace app::platform
