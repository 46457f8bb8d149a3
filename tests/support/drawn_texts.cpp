#include "tests/support/drawn_texts.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "app/theme/imgui_compat.hpp"
#include "core/base/utf8.hpp"

namespace support {
namespace {

using app::platform::glyphs_of;

/// Reads only letters that are loaded, because loading one would move others in the atlas.
bool is_mono(ImFont* font) {
  const auto& letters = glyphs_of(font)->Glyphs;
  const auto first = std::find_if(letters.begin(), letters.end(), [](const auto& g) { return g.Visible; });
  return std::all_of(first, letters.end(),
                     [&](const ImFontGlyph& g) { return !g.Visible || g.AdvanceX == first->AdvanceX; });
}

/// Start of a letter along the reading direction, and its line across it.
struct Place {
  float pen, line;
};

Place place_of(const ImDrawVert* v, const ImFontGlyph& g, bool turned) {
  if (turned) return {-(v[0].pos.y + g.X0), v[0].pos.x - g.Y0};
  return {v[0].pos.x - g.X0, v[0].pos.y - g.Y0};
}

void include(DrawnText& text, const ImDrawVert* v) {
  for (int k = 0; k < 4; ++k) {
    text.min = {std::min(text.min.x, v[k].pos.x), std::min(text.min.y, v[k].pos.y)};
    text.max = {std::max(text.max.x, v[k].pos.x), std::max(text.max.y, v[k].pos.y)};
  }
}

/// Returns the number of spaces between the end of a text and a place, or −1 if it does not continue there.
int spaces_between(ImFont* font, const Place& end, const Place& next, int most) {
  if (std::abs(next.line - end.line) > 0.1f) return -1;
  const float gap = next.pen - end.pen, blank = glyphs_of(font)->GetCharAdvance(' ');
  for (int n = 0; n <= most; ++n)
    if (std::abs(gap - static_cast<float>(n) * blank) < 0.3f) return n;
  return -1;
}

/// Returns whether a letter next to a text begins another number: cells of a map can be a blank apart.
bool begins_number(const std::string& text, ImWchar next) {
  const bool ends = std::isdigit(static_cast<unsigned char>(text.back())) || text.ends_with("∞");
  return ends && (next == U'−' || next == U'.' || (next >= U'0' && next <= U'9'));
}

}  // namespace

/// Text that grows letter by letter, and the place of its next letter.
struct TextReader::Growing {
  DrawnText text;
  ImFont* font = nullptr;
  float pen = 0, line = 0;
};

TextReader::TextReader() {
  read_letters();
}

void TextReader::read_letters() {
  letters_.clear();
  for (ImFont* font : ImGui::GetIO().Fonts->Fonts) {
    const bool mono = is_mono(font);
    for (const ImFontGlyph& g : glyphs_of(font)->Glyphs)
      if (g.Visible) letters_[{g.U0, g.V0, g.U1, g.V1}] = {font, g, mono};
  }
}

void TextReader::read_command(const ImDrawList& list, const ImDrawCmd& cmd,
                              std::vector<Growing>& texts) const {
  bool goes_on = false;  // whether the last text may continue
  const ImDrawIdx* index = list.IdxBuffer.Data + cmd.IdxOffset;
  for (unsigned k = 0; k + 6 <= cmd.ElemCount;) {
    const ImDrawIdx* i = index + k;
    const bool quad =
        i[1] == i[0] + 1 && i[2] == i[0] + 2 && i[3] == i[0] && i[4] == i[0] + 2 && i[5] == i[0] + 3;
    k += quad ? 6 : 3;
    if (!quad) continue;
    const ImDrawVert* v = list.VtxBuffer.Data + cmd.VtxOffset + i[0];
    const auto letter = letters_.find({v[0].uv.x, v[0].uv.y, v[2].uv.x, v[2].uv.y});
    if (letter == letters_.end()) {
      goes_on = false;
      continue;
    }
    const auto& [font, glyph, mono] = letter->second;
    const bool turned = std::abs(v[1].pos.x - v[0].pos.x) < 0.01f;
    const Place place = place_of(v, glyph, turned);
    const bool same = goes_on && texts.back().font == font && texts.back().text.turned == turned;
    const bool separate = same && mono && begins_number(texts.back().text.text, glyph.Codepoint);
    const int blanks =
        same ? spaces_between(font, {texts.back().pen, texts.back().line}, place, separate ? 0 : 2) : -1;
    if (blanks < 0)
      texts.push_back(
          {{"", v[0].pos, v[0].pos, app::platform::font_size(font), mono, turned, cmd.ClipRect}, font, 0, 0});
    else
      texts.back().text.text.append(static_cast<std::size_t>(blanks), ' ');
    goes_on = true;
    core::text::append_character(texts.back().text.text, glyph.Codepoint);
    include(texts.back().text, v);
    texts.back().line = place.line;
    texts.back().pen = place.pen + glyph.AdvanceX;
  }
}

std::vector<DrawnText> TextReader::texts() {
  if (app::platform::rasterizes_on_demand) read_letters();
  std::vector<Growing> grown;
  const ImDrawData* data = ImGui::GetDrawData();
  for (int n = 0; n < data->CmdListsCount; ++n)
    for (const ImDrawCmd& cmd : data->CmdLists[n]->CmdBuffer)
      if (!cmd.UserCallback) read_command(*data->CmdLists[n], cmd, grown);
  std::vector<DrawnText> texts;
  for (Growing& g : grown) texts.push_back(std::move(g.text));
  return texts;
}

std::vector<std::string> texts_within(ImVec2 min, ImVec2 max) {
  std::vector<std::string> words;
  TextReader reader;
  for (const DrawnText& t : reader.texts())
    if (t.min.x > min.x - 2 && t.max.x < max.x + 2 && t.min.y > min.y - 2 && t.max.y < max.y + 2)
      words.push_back(t.text);
  return words;
}

}  // namespace support
