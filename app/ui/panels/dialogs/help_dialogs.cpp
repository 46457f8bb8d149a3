#include "app/ui/panels/dialogs/dialogs.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/session/remembered.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/actions/actions.hpp"
#include "app/ui/panels/menus/menus.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/base/words.hpp"
#include "core/lessons/lessons.hpp"

namespace app::panels {

namespace {

/// Input of a search field in this frame.
struct SearchInput {
  std::string text;
  int moved = 0;  ///< lines down, by the arrow keys
};

inline constexpr float palette_pitch = 27;  ///< of the lines, at scale 1
constexpr std::size_t longest_text = 200;

/// State of the field's callback.
struct SearchFieldState {
  bool needs_focus = false;
  std::string early_input;  ///< typed before the field had the keyboard
  int moved = 0;
};

int on_search_event(ImGuiInputTextCallbackData* data) {
  auto& field_state = *static_cast<SearchFieldState*>(data->UserData);
  if (data->EventFlag == ImGuiInputTextFlags_CallbackHistory) {
    field_state.moved += data->EventKey == ImGuiKey_UpArrow ? -1 : 1;
  } else if (field_state.needs_focus) {  // it has just taken the keyboard
    if (!field_state.early_input.empty())
      data->InsertChars(data->BufTextLen, field_state.early_input.c_str());
    data->CursorPos = data->SelectionStart = data->SelectionEnd = data->BufTextLen;
  }
  return 0;
}

/// Draws a search field for Forms::search, which takes the keyboard whenever nothing else has it; its
/// landmark is name.
SearchInput search_field(const Frame& frame, const char* name, const char* hint, float width) {
  const ActionSearch& search = frame.forms.search;
  std::vector<char> buffer(search.text.begin(), search.text.end());
  buffer.resize(longest_text + search.text.size());
  SearchFieldState field_state{search.needs_focus, search.needs_focus ? typed_characters() : ""};
  if (search.needs_focus && !ImGui::IsMouseDown(ImGuiMouseButton_Left)) platform::focus_next_item();
  platform::push_font(frame.fonts.sans16);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {frame.metrics.px(10), frame.metrics.px(7)});
  ImGui::SetNextItemWidth(width);
  ImGui::InputText(
      "##text", buffer.data(), buffer.size(),
      ImGuiInputTextFlags_CallbackHistory | (search.needs_focus ? ImGuiInputTextFlags_CallbackAlways : 0),
      on_search_event, &field_state);
  ImGui::PopStyleVar();
  frame.landmarks.mark_item(name);
  const bool active = ImGui::IsItemActive();
  SearchInput field{buffer.data(), field_state.moved};
  if (!active) field.text += field_state.early_input;
  const ImVec2 min = ImGui::GetItemRectMin(), max = ImGui::GetItemRectMax();
  if (active) outline(min, max, frame.palette.accent, 2);
  if (field.text.empty()) {
    const float y = centered_y(frame.fonts.sans16, min.y, max.y - min.y);
    draw_text(frame.fonts.sans16, {min.x + frame.metrics.px(10) + 2, y}, frame.palette.faint, hint);
  }
  ImGui::PopFont();
  if (active == search.needs_focus) frame.commands.add(set<&ActionSearch::needs_focus>(!active));
  return field;
}

/// Returns where the UTF-8 character at a position ends, in bytes.
std::size_t letter_end(std::string_view text, std::size_t at) {
  do ++at;
  while (at < text.size() && !core::text::is_character_start(text[at]));
  return at;
}

/// Draws the name with its matched letters highlighted.
void draw_action_name(const Frame& frame, const FoundAction& found, ImVec2 at, float room, bool enabled) {
  ImFont* font = frame.fonts.sans15;
  const std::string shown = shortened(font, found.name, room);
  const Rgb plain = enabled ? frame.palette.text : frame.palette.faint;
  const Rgb highlighted = enabled ? frame.palette.accent : frame.palette.dim;
  const auto is_highlighted = [&](std::size_t from, std::size_t to) {
    const auto first = std::lower_bound(found.highlighted.begin(), found.highlighted.end(), from);
    return first != found.highlighted.end() && *first < to;
  };
  for (std::size_t begin = 0; begin < shown.size();) {
    std::size_t end = letter_end(shown, begin);
    const bool now = is_highlighted(begin, end);
    while (end < shown.size() && is_highlighted(end, letter_end(shown, end)) == now)
      end = letter_end(shown, end);
    const std::string_view run = std::string_view(shown).substr(begin, end - begin);
    at.x += draw_text(font, at, now ? highlighted : plain, run);
    begin = end;
  }
}

/// Draws one line of the palette: a check mark, the name with its matched letters highlighted, its menu or
/// why it cannot be done, and its key.
void draw_palette_line(const Frame& frame, const ActionContext& context, const FoundAction& found, ImVec2 min,
                       ImVec2 max, bool chosen) {
  const Action& action = *found.action;
  const std::string why = disabled_reason(action, context),
                    key = shortcut_text(action, context.pending, context.forms.in_browser);
  const auto px = [&](float length) { return frame.metrics.px(length); };
  if (chosen) draw_rect(min, max, frame.palette.control.hovered, px(3));
  const float gutter = px(28), keys = px(120), height = max.y - min.y;
  if (action.checked && action.checked(context))
    draw_tick(frame, {min.x + gutter / 2, min.y + height / 2}, frame.palette.accent);
  const std::string& remark = why.empty() ? found.subtitle : why;
  ImFont *small = frame.fonts.sans13, *font = frame.fonts.sans15, *mono = frame.fonts.mono13;
  const float right = max.x - keys;
  const float remark_width = std::min(text_width(small, remark), (right - min.x) / 2);
  draw_action_name(frame, found, {min.x + gutter, centered_y(font, min.y, height)},
                   right - remark_width - px(16) - min.x - gutter, why.empty());
  draw_text_within(small, {right - remark_width, centered_y(small, min.y, height)}, remark_width + 1,
                   why.empty() ? frame.palette.dim : frame.palette.faint, remark);
  if (!key.empty())
    draw_text_right(mono, max.x - px(10), centered_y(mono, min.y, height),
                    why.empty() ? frame.palette.dim : frame.palette.faint, key);
}

constexpr const char* palette_popup = "###palette";
constexpr std::size_t max_result_lines = 14;

/// Returns the selected line after this frame's keys.
std::size_t selected_line(const Frame& frame, const SearchInput& field, std::size_t n) {
  if (n == 0) return 0;
  int by = field.moved;
  const int page = static_cast<int>(max_result_lines) - 1;
  if (platform::key_pressed(ImGuiKey_PageDown)) by += page;
  if (platform::key_pressed(ImGuiKey_PageUp)) by -= page;
  const std::size_t from =
      field.text == frame.forms.search.text ? std::min(frame.forms.search.line, n - 1) : 0;
  return static_cast<std::size_t>(std::clamp(static_cast<long>(from) + by, 0L, static_cast<long>(n) - 1));
}

void update_search(const Frame& frame, const SearchInput& field, std::size_t line) {
  const ActionSearch& before = frame.forms.search;
  if (before.text == field.text && before.line == line) return;
  frame.commands.add(set<&ActionSearch::text>(field.text), set<&ActionSearch::line>(line));
}

/// Scrolls the selected line into view.
void scroll_to_line(float pitch, std::size_t line, float height) {
  const float top = pitch * static_cast<float>(line), scroll = ImGui::GetScrollY();
  if (top < scroll) ImGui::SetScrollY(top);
  if (top + pitch > scroll + height) ImGui::SetScrollY(top + pitch - height);
}

/// Draws the lines; returns the one chosen by a click or Enter.
std::optional<std::size_t> draw_results(const Frame& frame, const ActionContext& context,
                                        std::span<const FoundAction> found, const SearchInput& field,
                                        ImVec2 size) {
  const ImGuiIO& io = ImGui::GetIO();
  const float pitch = frame.metrics.px(palette_pitch);
  std::size_t line = selected_line(frame, field, found.size());
  std::optional<std::size_t> activated;
  platform::begin_child("lines", size, false, ImGuiWindowFlags_NoNav);
  if (line != frame.forms.search.line || field.text != frame.forms.search.text)
    scroll_to_line(pitch, line, size.y);
  const ImVec2 at = ImGui::GetCursorScreenPos(), corner = ImGui::GetWindowPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const bool points =
      ImGui::IsWindowHovered() && (io.MouseDelta.x != 0 || io.MouseDelta.y != 0 || io.MouseClicked[0]);
  for (std::size_t k = 0; k < found.size(); ++k) {
    const ImVec2 min(at.x, at.y + pitch * static_cast<float>(k)), max(at.x + width, min.y + pitch);
    if (max.y <= corner.y || min.y >= corner.y + size.y) continue;
    if (points && ImGui::IsMouseHoveringRect(min, max)) {
      line = k;
      if (io.MouseClicked[0]) activated = k;
    }
    draw_palette_line(frame, context, found[k], min, max, k == line);
    frame.landmarks.mark("palette/line/" + std::to_string(k), min, max);
    frame.landmarks.mark("palette/" + found[k].action->id, min, max);
  }
  ImGui::Dummy({width, pitch * static_cast<float>(found.size())});
  ImGui::EndChild();
  update_search(frame, field, line);
  const bool enter =
      platform::key_pressed(ImGuiKey_Enter, false) || platform::key_pressed(platform::keypad_enter, false);
  if (enter && line < found.size()) activated = line;
  return activated;
}

/// Returns the actions for an empty search: recent ones, then frequent ones.
std::vector<FoundAction> suggested_actions(const Frame& frame, std::span<const Action> all) {
  constexpr std::size_t each = 4;
  constexpr std::array frequent{"file/open",      "edit/undo", "model/causal", "model/training",
                                "stages/gutters", "help/keys", "file/export",  "view/present"};
  std::vector<FoundAction> found;
  const auto add = [&](std::string_view id, const char* subtitle) {
    const Action* action = find_action(all, id);
    const bool is_new = std::ranges::none_of(found, [&](const auto& f) { return f.action == action; });
    if (action && action->command && is_new) found.push_back({action, action->title, subtitle, {}});
  };
  for (const std::string& id : frame.forms.used_actions)
    if (found.size() < each) add(id, "recent");
  const std::size_t most = found.size() + each;
  for (const char* id : frequent)
    if (found.size() < most) add(id, "frequent");
  return found;
}

void draw_palette_contents(const Frame& frame, float width) {
  const ActionContext context = situation_of(frame);
  const SearchInput field =
      search_field(frame, "palette/field", "An action, preset, stage, lesson or setting", width);
  const std::vector<Action> all = actions(context);
  const std::vector<FoundAction> found = field.text.empty()
                                             ? suggested_actions(frame, all)
                                             : search_actions(all, field.text, [&](const Action& action) {
                                                 return disabled_reason(action, context).empty();
                                               });
  const float pitch = frame.metrics.px(palette_pitch);
  const float below = ImGui::GetIO().DisplaySize.y - ImGui::GetCursorScreenPos().y - frame.metrics.px(48);
  const float fit = std::max(3.0f, std::floor(below / pitch));
  const float n_lines =
      std::min({static_cast<float>(found.size()), static_cast<float>(max_result_lines), fit});
  if (found.empty()) {
    update_search(frame, field, 0);
    paragraph(frame.fonts.sans15, frame.palette.dim, width, "No match.");
  } else if (const auto activated = draw_results(frame, context, found, field, {width, pitch * n_lines});
             activated && disabled_reason(*found[*activated].action, context).empty()) {
    close_dialog(frame);
    frame.commands.add(
        set<&Forms::used_actions>(with_used_action(frame.forms.used_actions, found[*activated].action->id)));
    perform(*found[*activated].action, context, frame.commands);
    return;
  }
  const bool clicked_outside = ImGui::IsMouseClicked(ImGuiMouseButton_Left) &&
                               !ImGui::IsWindowHovered(ImGuiHoveredFlags_RootAndChildWindows);
  if (clicked_outside || platform::key_pressed(ImGuiKey_Escape, false)) close_dialog(frame);
}

}  // namespace

void draw_action_palette(const Frame& frame) {
  const bool wanted = frame.forms.dialog == Dialog::palette;
  if (wanted && !ImGui::IsPopupOpen(palette_popup)) ImGui::OpenPopup(palette_popup);
  if (!ImGui::IsPopupOpen(palette_popup)) return;
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  const float margin = frame.metrics.px(8);
  const float width = dialog_width(frame, 680);
  ImGui::SetNextWindowPos({std::round(window.x / 2), frame.metrics.menu + frame.metrics.tabs},
                          ImGuiCond_Always, {0.5f, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {margin, margin});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, frame.metrics.px(3));
  const bool open =
      ImGui::BeginPopupModal(palette_popup, nullptr,
                             ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoMove |
                                 ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoSavedSettings);
  ImGui::PopStyleVar(3);
  if (!open) return;
  if (wanted)
    draw_palette_contents(frame, width);
  else
    ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
}

void draw_glossary_dialog(const Frame& frame) {
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  const float width = dialog_width(frame, 560);
  const float height = std::min(frame.metrics.px(600), window.y - frame.metrics.px(160));
  platform::begin_child("terms", {width, height});
  const float room = width - ImGui::GetStyle().ScrollbarSize - frame.metrics.px(8);
  for (const core::lessons::Term& term : core::lessons::glossary()) {
    paragraph(frame.fonts.sans15, frame.palette.text, room, term.word);
    frame.landmarks.mark_item(std::string("glossary/") + term.word);
    paragraph(frame.fonts.sans14, frame.palette.dim, room, term.meaning);
    ImGui::Dummy({room, frame.metrics.px(4)});
  }
  ImGui::EndChild();
  ImGui::Dummy({width, frame.metrics.px(4)});
  if (button(frame, "dialog/close", "Close")) close_dialog(frame);
}

namespace {

// At scale 1.
constexpr float min_column_width = 380, largest_column = 520, keys_room = 16, line_gap = 6, heading_room = 30;

/// Line of the key sheet, or a heading, and its height in pixels.
struct KeySheetEntry {
  const KeyLine* line = nullptr;
  std::string heading = {};
  float height = 0;
};

float wrapped_height(ImFont* font, float width, const std::string& words) {
  return font->CalcTextSizeA(platform::font_size(font), FLT_MAX, width, words.c_str()).y;
}

/// Whether a line contains each word of a query, ignoring ASCII case.
bool has_words(const KeyLine& line, std::string_view query) {
  const std::string text = core::text::lower(line.words + "\n" + line.keys);
  return !core::text::any_word(core::text::lower(query),
                               [&](std::string_view word) { return text.find(word) == text.npos; });
}

/// Returns the lines that match a query, below the names of their menus, each of which is there once.
std::vector<KeySheetEntry> find_key_lines(const Frame& frame, const std::vector<KeyLine>& all,
                                          const std::string& query, float width) {
  std::vector<KeySheetEntry> found;
  std::vector<std::string> menus;
  for (const KeyLine& line : all)
    if (has_words(line, query) && std::ranges::find(menus, line.menu) == menus.end())
      menus.push_back(line.menu);
  for (const std::string& menu : menus) {
    found.push_back({nullptr, menu, frame.metrics.px(heading_room)});
    for (const KeyLine& line : all)
      if (line.menu == menu && has_words(line, query))
        found.push_back(
            {&line, "", wrapped_height(frame.fonts.sans15, width, line.words) + frame.metrics.px(line_gap)});
  }
  return found;
}

/// Returns where the second of two columns begins: at the heading that makes the longer one shortest.
std::size_t second_column(const std::vector<KeySheetEntry>& lines, float total) {
  std::size_t best = lines.size();
  float above = 0, least = total;
  for (std::size_t k = 0; k < lines.size(); above += lines[k++].height)
    if (const float longer = std::max(above, total - above); !lines[k].line && longer < least)
      least = longer, best = k;
  return best;
}

void draw_key_sheet_entry(const Frame& frame, const KeySheetEntry& entry, ImVec2 at, float keys_width,
                          float words_width) {
  if (!entry.line) {
    draw_text(frame.fonts.sans13, {at.x, at.y + frame.metrics.px(10)}, frame.palette.faint, entry.heading);
    return;
  }
  const float middle = at.y + platform::font_size(frame.fonts.sans15) / 2;
  draw_text(frame.fonts.mono13, {at.x, middle}, Align::left_middle, frame.palette.text, entry.line->keys);
  ImFont* font = frame.fonts.sans15;
  ImGui::GetWindowDrawList()->AddText(
      font, platform::font_size(font), {std::round(at.x + keys_width), std::round(at.y)},
      packed(frame.palette.dim), entry.line->words.c_str(), nullptr, words_width);
}

}  // namespace

void draw_key_sheet(const Frame& frame) {
  const std::vector<KeyLine> all = key_sheet(actions(situation_of(frame)), frame.forms.in_browser);
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  const float room = window.x - frame.metrics.px(80), gap = frame.metrics.px(24);
  const std::size_t n_columns = room >= 2 * frame.metrics.px(min_column_width) + gap ? 2 : 1;
  const float column =
      std::min(frame.metrics.px(largest_column), (room - gap) / static_cast<float>(n_columns));
  float keys_width = 0;
  for (const KeyLine& line : all)
    keys_width = std::max(keys_width, text_width(frame.fonts.mono13, line.keys));
  keys_width += frame.metrics.px(keys_room);
  const float words_width = column - keys_width - gap;
  const float width = column * static_cast<float>(n_columns);

  const SearchInput search = search_field(frame, "dialog/find", "Keys or what they do", width);
  if (search.text != frame.forms.search.text) frame.commands.add(set<&ActionSearch::text>(search.text));
  const std::vector<KeySheetEntry> lines = find_key_lines(frame, all, search.text, words_width);
  float total = 0;
  for (const KeySheetEntry& entry : lines) total += entry.height;
  const std::size_t second = n_columns > 1 ? second_column(lines, total) : lines.size();
  float first = 0;
  for (std::size_t k = 0; k < second; ++k) first += lines[k].height;
  const float most = window.y - frame.metrics.px(190);
  platform::begin_child("keys",
                        {width, std::min(most, std::max(first, total - first) + frame.metrics.px(30))});
  const ImVec2 at = ImGui::GetCursorScreenPos();
  float y = 0, x = 0, deepest = 0;
  std::size_t index = 0;
  for (const KeySheetEntry& entry : lines) {
    if (&entry - lines.data() == static_cast<std::ptrdiff_t>(second)) x = column, y = 0;
    draw_key_sheet_entry(frame, entry, {at.x + x, at.y + y}, keys_width, words_width);
    if (entry.line)
      frame.landmarks.mark("dialog/keys/" + std::to_string(index++), {at.x + x, at.y + y},
                           {at.x + x + column, at.y + y + entry.height});
    y += entry.height;
    deepest = std::max(deepest, y);
  }
  if (lines.empty()) draw_text(frame.fonts.sans15, at, frame.palette.dim, "No match.");
  ImGui::Dummy({1, std::max(deepest, frame.metrics.px(24))});
  ImGui::EndChild();
  ImGui::Dummy({width, frame.metrics.px(4)});
}

}  // namespace app::panels
