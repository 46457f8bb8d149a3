#include "app/ui/panels/dialogs/help_dialogs.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/dialogs/file_dialogs.hpp"
#include "app/ui/panels/dialogs/palette.hpp"
#include "app/ui/panels/menus/menus.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/text.hpp"
#include "core/lessons/lessons.hpp"

namespace app::panels {

void draw_glossary_dialog(const Frame& frame) {
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  const float width = std::min(frame.metrics.px(560), window.x - frame.metrics.px(80));
  const float height = std::min(frame.metrics.px(600), window.y - frame.metrics.px(160));
  platform::begin_child("terms", {width, height});
  const float room = width - ImGui::GetStyle().ScrollbarSize - frame.metrics.px(8);
  for (const core::lessons::Term& term : core::lessons::glossary()) {
    widgets::paragraph(frame.fonts.sans15, frame.palette.text, room, term.word);
    frame.landmarks.mark_item(std::string("glossary/") + term.word);
    widgets::paragraph(frame.fonts.sans14, frame.palette.dim, room, term.meaning);
    ImGui::Dummy({room, frame.metrics.px(4)});
  }
  ImGui::EndChild();
  ImGui::Dummy({width, frame.metrics.px(4)});
  if (widgets::button(frame, "dialog/close", "Close")) close_dialog(frame);
}

namespace {

// At scale 1.
constexpr float least_column = 380, largest_column = 520, keys_room = 16, line_gap = 6, heading_room = 30;

/// A line of the sheet with its place; a heading has no keys.
struct Placed {
  const KeyLine* line = nullptr;
  std::string heading = {};
  float height = 0;
};

float wrapped_height(ImFont* font, float width, const std::string& words) {
  return font->CalcTextSizeA(platform::font_size(font), FLT_MAX, width, words.c_str()).y;
}

/// Whether a line has each word of what is looked for, wherever; capitals of ASCII are like small letters.
bool has_words(const KeyLine& line, std::string_view query) {
  const std::string text = core::text::lower(line.words + "\n" + line.keys), all = core::text::lower(query);
  for (std::size_t from = 0; from < all.size();) {
    const std::size_t end = std::min(all.find(' ', from), all.size());
    if (text.find(all.substr(from, end - from)) == text.npos) return false;
    from = end + 1;
  }
  return true;
}

/// The lines that have the letters that are looked for, below the names of their menus.
std::vector<Placed> found_lines(const Frame& frame, const std::vector<KeyLine>& all, const std::string& query,
                                float width) {
  std::vector<Placed> found;
  std::string menu;
  for (const KeyLine& line : all) {
    if (!has_words(line, query)) continue;
    if (line.menu != menu) found.push_back({nullptr, line.menu, frame.metrics.px(heading_room)});
    menu = line.menu;
    found.push_back(
        {&line, "", wrapped_height(frame.fonts.sans15, width, line.words) + frame.metrics.px(line_gap)});
  }
  return found;
}

void draw_placed(const Frame& frame, const Placed& placed, ImVec2 at, float keys_width, float words_width) {
  if (!placed.line) {
    widgets::draw_text(frame.fonts.sans13, {at.x, at.y + frame.metrics.px(10)}, frame.palette.faint,
                       placed.heading);
    return;
  }
  const float middle = at.y + platform::font_size(frame.fonts.sans15) / 2;
  widgets::draw_text(frame.fonts.mono13, {at.x, middle}, widgets::Align::left_middle,
                     packed(frame.palette.text), placed.line->keys);
  ImFont* font = frame.fonts.sans15;
  ImGui::GetWindowDrawList()->AddText(
      font, platform::font_size(font), {std::round(at.x + keys_width), std::round(at.y)},
      packed(frame.palette.dim), placed.line->words.c_str(), nullptr, words_width);
}

}  // namespace

void draw_key_sheet(const Frame& frame) {
  const std::vector<KeyLine> all = key_sheet(actions(situation_of(frame)));
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  const float room = window.x - frame.metrics.px(80), gap = frame.metrics.px(24);
  const std::size_t n_columns = room >= 2 * frame.metrics.px(least_column) + gap ? 2 : 1;
  const float column =
      std::min(frame.metrics.px(largest_column), (room - gap) / static_cast<float>(n_columns));
  float keys_width = 0;
  for (const KeyLine& line : all)
    keys_width = std::max(keys_width, widgets::text_width(frame.fonts.mono13, line.keys));
  keys_width += frame.metrics.px(keys_room);
  const float words_width = column - keys_width - gap;
  const float width = column * static_cast<float>(n_columns);

  const Searched search = search_field(frame, "dialog/find", "Keys or what they do", width);
  if (search.text != frame.forms.search.text) frame.commands.add(set<&ActionSearch::text>(search.text));
  const std::vector<Placed> lines = found_lines(frame, all, search.text, words_width);
  float total = 0;
  for (const Placed& placed : lines) total += placed.height;
  const float share = total / static_cast<float>(n_columns);
  const float most = window.y - frame.metrics.px(190);
  platform::begin_child("keys", {width, std::min(most, share + frame.metrics.px(heading_room + 30))});
  const ImVec2 at = ImGui::GetCursorScreenPos();
  float y = 0, x = 0, deepest = 0;
  std::size_t index = 0;
  for (const Placed& placed : lines) {
    const float below = placed.line ? 0 : frame.metrics.px(heading_room);  // a heading keeps its first line
    if (x == 0 && n_columns > 1 && y + below >= share) x = column, y = 0;
    draw_placed(frame, placed, {at.x + x, at.y + y}, keys_width, words_width);
    if (placed.line)
      frame.landmarks.mark("dialog/keys/" + std::to_string(index++), {at.x + x, at.y + y},
                           {at.x + x + column, at.y + y + placed.height});
    y += placed.height;
    deepest = std::max(deepest, y);
  }
  if (lines.empty()) widgets::draw_text(frame.fonts.sans15, at, frame.palette.dim, "No match.");
  ImGui::Dummy({1, std::max(deepest, frame.metrics.px(24))});
  ImGui::EndChild();
  ImGui::Dummy({width, frame.metrics.px(4)});
}

}  // namespace app::panels
