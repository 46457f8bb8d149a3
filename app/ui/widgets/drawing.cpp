#include "app/ui/widgets/drawing.hpp"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <ctime>
#include <optional>
#include <set>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/out/drawing.hpp"
#include "core/system/fonts.hpp"

namespace app::widgets {

namespace {

/// Key of the frame in which an item used Enter, in the storage of its window.
constexpr ImGuiID enter_frame_id = 0x656e7472;

/// Returns whether Enter was pressed outside a text field.
bool enter_pressed() {
  return !ImGui::GetIO().WantTextInput && (platform::key_pressed(ImGuiKey_Enter, false) ||
                                           platform::key_pressed(platform::keypad_enter, false));
}

}  // namespace

bool has_keyboard_focus() {
  return ImGui::IsItemFocused() && ImGui::GetIO().NavVisible;
}

bool enter_pressed_on_item() {
  if (!has_keyboard_focus() || !enter_pressed()) return false;
  ImGui::GetStateStorage()->SetInt(enter_frame_id, ImGui::GetFrameCount());
  return true;
}

bool enter_confirms() {
  return enter_pressed() && ImGui::GetStateStorage()->GetInt(enter_frame_id, -1) != ImGui::GetFrameCount();
}

bool hit_area(const char* name, ImVec2 size) {
  // Dear ImGui aborts on an item without a size.
  const bool pressed = ImGui::InvisibleButton(name, {std::max(1.0f, size.x), std::max(1.0f, size.y)});
  return enter_pressed_on_item() || pressed;
}

void draw_focus(const Frame& frame, ImVec2 min, ImVec2 max) {
  if (has_keyboard_focus()) outline(min, max, frame.palette.accent, 2);
}

void reserve_room(ImVec2 at, ImVec2 size) {
  platform::move_to(at);
  ImGui::Dummy(size);
}

void draw_rect(ImVec2 min, ImVec2 max, Ink ink, float rounding) {
  ImGui::GetWindowDrawList()->AddRectFilled(min, max, ink.packed, rounding);
}

void draw_cross(ImVec2 middle, float arm, Ink ink, float thickness) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddLine({middle.x - arm, middle.y - arm}, {middle.x + arm, middle.y + arm}, ink.packed, thickness);
  list->AddLine({middle.x - arm, middle.y + arm}, {middle.x + arm, middle.y - arm}, ink.packed, thickness);
}

void draw_ablated(const Frame& frame, ImVec2 min, ImVec2 max) {
  draw_rect(min, max, packed(frame.palette.background.back, 0.62f));
  const float inset = std::min(frame.metrics.px(12), (max.x - min.x) / 6);
  const ImU32 ink = packed(frame.palette.dim);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddLine({min.x + inset, min.y + inset}, {max.x - inset, max.y - inset}, ink, 1.5f);
  list->AddLine({min.x + inset, max.y - inset}, {max.x - inset, min.y + inset}, ink, 1.5f);
}

void draw_fraction_bar(const Frame& frame, ImVec2 min, ImVec2 max, double share, Ink ink) {
  draw_rect(min, max, frame.palette.control.rest);
  draw_rect(min, {min.x + static_cast<float>(share) * (max.x - min.x), max.y}, ink);
}

void draw_signed_bar(const Frame& frame, ImVec2 min, ImVec2 max, double share) {
  share = std::clamp(share, -1.0, 1.0);
  const float zero = std::round((min.x + max.x) / 2),
              end = zero + std::round(static_cast<float>(share) * (max.x - min.x) / 2);
  draw_rect(min, max, frame.palette.control.rest);
  draw_rect({std::min(zero, end), min.y}, {std::max(zero, end), max.y},
            render::color_at(frame.displayed.look.colors.diverging, frame.palette.dark, 0.5 + share / 2));
  draw_rect({zero, min.y - 2}, {zero + 1, max.y + 2}, frame.palette.faint);
}

void draw_color_map(const Frame& frame, ImVec2 min, ImVec2 max, render::ColorMap map) {
  constexpr int steps = 64;
  const auto x = [&](int k) { return std::round(min.x + (max.x - min.x) * static_cast<float>(k) / steps); };
  for (int k = 0; k < steps; ++k)
    draw_rect({x(k), min.y}, {x(k + 1), max.y}, render::color_at(map, frame.palette.dark, (k + 0.5) / steps));
}

void draw_tick(const Frame& frame, ImVec2 middle, Ink ink) {
  const float r = frame.metrics.px(4);
  const std::array<ImVec2, 3> tick{ImVec2(middle.x - r, middle.y),
                                   ImVec2(middle.x - r / 3, middle.y + r * 0.7f),
                                   ImVec2(middle.x + r, middle.y - r * 0.7f)};
  ImGui::GetWindowDrawList()->AddPolyline(tick.data(), 3, ink.packed, 0, frame.metrics.px(1.5f));
}

float key_cap_width(const Frame& frame, ImFont* font, std::string_view key) {
  return text_width(font, key) + frame.metrics.px(12);
}

float draw_key_cap(const Frame& frame, ImFont* font, ImVec2 left_middle, std::string_view key,
                   Rgb background) {
  const float width = key_cap_width(frame, font, key), half = std::round(platform::font_size(font) * 0.75f);
  const auto [left, middle] = left_middle;
  draw_rect({left, middle - half}, {left + width, middle + half}, background, frame.metrics.px(3));
  draw_text(font, {left + width / 2, middle}, Align::middle, frame.palette.text, key);
  return width;
}

ImVec2 Flow::place(float item) {
  if (next.x > start.x && next.x + item > start.x + width) next = {start.x, next.y + pitch};
  const ImVec2 at = next;
  next.x += item + gap;
  return at;
}

std::string inspector_text(double value) {
  const double size = std::abs(value);
  if (value == 0) return "0";
  const bool fits_fixed = !std::isfinite(value) || (size < 1e5 && size >= 5e-5);
  return fits_fixed ? fixed(value, 4) : scientific(value);
}

bool link(const Frame& frame, const std::string& name, ImFont* font, ImVec2 at, Align align, Rgb color,
          const std::string& text, const std::string& help) {
  const float width = text_width(font, text), half = std::round(platform::font_size(font) * 0.6f);
  const float left = align == Align::right_middle ? at.x - width
                     : align == Align::middle     ? at.x - width / 2
                                                  : at.x;
  const ImVec2 min{std::round(left), std::round(at.y) - half};
  platform::move_to(min);
  const bool pressed = hit_area(name.c_str(), {width, 2 * half});
  frame.landmarks.mark_item(name);
  draw_text(font, at, align, color, text);
  if (ImGui::IsItemHovered()) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    draw_rect({min.x, min.y + 2 * half - 1}, {min.x + std::round(width), min.y + 2 * half}, color);
  }
  draw_focus(frame, {min.x - 3, min.y - 1}, {min.x + width + 3, min.y + 2 * half + 1});
  if (!help.empty()) tooltip(help);
  return pressed;
}

void Pen::rule() {
  skip(10);
  draw_rect({left, std::round(y)}, {right, std::round(y) + 1}, frame.palette.line);
  skip(12);
}

void Pen::at_left(ImFont* font, Rgb color, std::string_view text) const {
  draw_text(font, {left, y}, Align::left_middle, color, text);
}

void Pen::at_right(ImFont* font, Rgb color, std::string_view text) const {
  draw_text(font, {right, y}, Align::right_middle, color, text);
}

void Pen::heading(const std::string& words) {
  skip(8);
  at_left(frame.fonts.sans16, frame.palette.text, shortened(frame.fonts.sans16, words, right - left));
  skip(14);
}

void Pen::pair(const std::string& words, const std::string& number) {
  skip(10);
  const float room = right - left - text_width(frame.fonts.mono14, number) - frame.metrics.px(8);
  draw_glossary_line(frame, frame.fonts.sans14, frame.palette.dim, {left, y},
                     shortened(frame.fonts.sans14, words, room));
  at_right(frame.fonts.mono14, frame.palette.text, number);
  skip(10);
}

bool Pen::linked_pair(const std::string& name, const std::string& words, const std::string& number) {
  skip(10);
  const float room = right - left - text_width(frame.fonts.mono14, number) - frame.metrics.px(8);
  at_left(frame.fonts.sans14, frame.palette.dim, shortened(frame.fonts.sans14, words, room));
  const bool pressed =
      link(frame, name, frame.fonts.mono14, {right, y}, Align::right_middle, frame.palette.operand, number);
  skip(10);
  return pressed;
}

void Pen::share(const std::string& words, double value, double end) {
  skip(10);
  const float from = left + std::round((right - left) * 0.3f),
              to = right - text_width(frame.fonts.mono14, "−00.0000") - frame.metrics.px(8),
              half = frame.metrics.px(5);
  draw_glossary_line(frame, frame.fonts.sans14, frame.palette.dim, {left, y},
                     shortened(frame.fonts.sans14, words, from - left - frame.metrics.px(6)));
  draw_signed_bar(frame, {from, y - half}, {to, y + half}, end > 0 && std::isfinite(value) ? value / end : 0);
  at_right(frame.fonts.mono14, frame.palette.text, inspector_text(value));
  skip(11);
}

void Pen::prose(const std::string& words, Rgb color) {
  y = std::round(y);
  const ImVec2 size = draw_prose(frame.fonts.sans14, {left, y}, right - left, color, words);
  reserve_room({left, y}, size);
  y += size.y;
  skip(4);
}

namespace {

constexpr float chip_margin = 3;
constexpr float subscript_size = 0.76f, subscript_drop = 0.36f;
constexpr float digit_height_ratio = 0.626f;  // of DejaVu's line box

/// Returns the distance from the top of a line to the middle of its digits; adjacent sizes share a baseline.
float digit_middle(ImFont* font) {
  return std::round(platform::ascent(font)) - std::round(platform::font_size(font) * digit_height_ratio) / 2;
}

/// Returns the loaded font closest to a subscript's size: a font drawn below its loaded size is blurred.
ImFont* subscript_font(const ImFont* font) {
  const float wanted = platform::font_size(font) * subscript_size;
  ImFont* nearest = nullptr;
  for (ImFont* other : ImGui::GetIO().Fonts->Fonts) {
    if (platform::font_size(other) > platform::font_size(font)) continue;
    if (!nearest ||
        std::abs(platform::font_size(other) - wanted) < std::abs(platform::font_size(nearest) - wanted))
      nearest = other;
  }
  return nearest;
}

/// Part of a text that a font can draw, or a character that no font can.
struct GlyphRun {
  std::string_view text;
  char32_t missing = 0;
};

/// Removes and returns the leading text that a font can draw, or one character that no font can. Requests
/// missing characters, which are drawn as usual until the search for a font is done.
GlyphRun take_run(ImFont* font, std::string_view& text) {
  auto* const characters = static_cast<GlyphRequests*>(ImGui::GetIO().UserData);
  GlyphRun run{text};
  for (std::size_t at = 0; characters && at < text.size();) {
    const bool is_ascii = static_cast<unsigned char>(text[at]) < 0x80;
    const auto character = is_ascii ? std::nullopt : core::text::first_character(text.substr(at));
    if (character && !platform::has_glyph(font, character->value)) {
      characters->wanted.insert(character->value);
      if (characters->missing.contains(character->value)) {
        run = at > 0 ? GlyphRun{text.substr(0, at)}
                     : GlyphRun{text.substr(0, character->size), character->value};
        break;
      }
    }
    at += character ? character->size : 1;
  }
  text.remove_prefix(run.text.size());
  return run;
}

float run_width(ImFont* font, const GlyphRun& run) {
  const std::string chip = run.missing ? core::text::code_point_name(run.missing) : "";
  ImFont* used = run.missing ? subscript_font(font) : font;
  const std::string_view text = run.missing ? std::string_view(chip) : run.text;
  const float width =
      used->CalcTextSizeA(platform::font_size(used), FLT_MAX, 0, text.data(), text.data() + text.size()).x;
  return run.missing ? width + 2 * chip_margin : width;
}

/// Draws a box with the code point of a character that cannot be drawn; its tooltip says why.
void draw_chip(ImFont* font, ImVec2 at, ImU32 color, char32_t c) {
  ImFont* small = subscript_font(font);
  const std::string words = core::text::code_point_name(c);
  const ImVec2 end{at.x + run_width(font, {{}, c}), at.y + platform::font_size(font)};
  outline({at.x + 1, at.y}, {end.x - 1, end.y}, color, 1);
  ImGui::GetWindowDrawList()->AddText(
      small, platform::font_size(small),
      {at.x + chip_margin, centered_y(small, at.y, platform::font_size(font))}, color, words.c_str());
  if (hovers(at, end)) ImGui::SetTooltip("%s", core::fonts::missing_characters_message({c}).c_str());
}

/// Returns whether all characters are as wide as high, as in Chinese, Japanese and Korean.
bool is_wide(std::string_view text) {
  const std::u32string characters = core::text::decode_utf8_lossy(text);
  return !characters.empty() && std::ranges::all_of(characters, core::text::is_wide);
}

/// Draws characters from top to bottom, the last one at the bottom.
void draw_text_upright(ImFont* font, ImVec2 bottom_middle, Ink ink, std::string_view text) {
  float y = bottom_middle.y - text_width(font, text);
  while (const auto character = core::text::first_character(text)) {
    const std::string_view one = text.substr(0, character->size);
    const float width = text_width(font, one);
    draw_text(font, {bottom_middle.x - width / 2, y}, Align::left_top, ink, one);
    y += width;
    text.remove_prefix(one.size());
  }
}

/// Returns how many bytes fit in one line: whole words, or a part of a word longer than the line.
std::size_t line_length(ImFont* font, float width, std::string_view text) {
  const std::size_t stop = std::min(text.find('\n'), text.size());
  std::size_t fits = 0;
  for (std::size_t end = 0; end < stop;) {
    end = std::min(text.find(' ', end + 1), stop);
    if (text_width(font, text.substr(0, end)) > width) break;
    fits = end;
  }
  if (fits > 0 || stop == 0) return fits;
  std::size_t letters = 1;  // at least one
  for (std::size_t k = 1; k <= stop; ++k)
    if (k == stop || core::text::is_character_start(text[k])) {
      if (text_width(font, text.substr(0, k)) > width && letters > 1) break;
      letters = k;
    }
  return letters;
}

}  // namespace

float text_width(ImFont* font, std::string_view text) {
  float width = 0;
  while (!text.empty()) width += run_width(font, take_run(font, text));
  return width;
}

float baseline_drop(ImFont* large, ImFont* small) {
  return std::round(platform::ascent(large)) - std::round(platform::ascent(small));
}

float draw_text(ImFont* font, ImVec2 position, Align align, Ink ink, std::string_view text) {
  if (text.empty()) return 0;
  if (align == Align::middle) position.x -= text_width(font, text) / 2;
  if (align == Align::right_middle) position.x -= text_width(font, text);
  if (align != Align::left_top) position.y -= digit_middle(font);
  const float left = position.x;
  while (!text.empty()) {
    const GlyphRun run = take_run(font, text);
    const ImVec2 at{std::round(position.x), std::round(position.y)};
    if (run.missing)
      draw_chip(font, at, ink.packed, run.missing);
    else
      ImGui::GetWindowDrawList()->AddText(font, platform::font_size(font), at, ink.packed, run.text.data(),
                                          run.text.data() + run.text.size());
    position.x += run_width(font, run);
  }
  return position.x - left;
}

void draw_text_rotated(ImFont* font, ImVec2 bottom_middle, Ink ink, std::string_view text) {
  if (is_wide(text)) return draw_text_upright(font, bottom_middle, ink, text);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 start{std::round(bottom_middle.x - digit_middle(font)), std::round(bottom_middle.y)};
  // Text is drawn horizontally, then its vertices are rotated about the start.
  const int first = list->VtxBuffer.Size;
  platform::draw_unclipped_text(list, font, platform::font_size(font), start, ink.packed, text.data(),
                                text.data() + text.size());
  for (int k = first; k < list->VtxBuffer.Size; ++k) {
    ImVec2& p = list->VtxBuffer[k].pos;
    p = {start.x + (p.y - start.y), start.y - (p.x - start.x)};
  }
}

std::string shortened(ImFont* font, const std::string& text, float room) {
  std::size_t prefix_length = std::min<std::size_t>(text.size(), 64);  // a token may be of any length
  while (prefix_length < text.size() &&
         text_width(font, std::string_view(text).substr(0, prefix_length)) <= room)
    prefix_length = std::min(2 * prefix_length, text.size());
  if (prefix_length == text.size() && text_width(font, text) <= room) return text;
  std::vector<std::size_t> ends{0};  // of the prefixes
  for (std::size_t at = 1; at < prefix_length; ++at)
    if (core::text::is_character_start(text[at])) ends.push_back(at);
  const auto cut_at = [&](std::size_t end) { return text.substr(0, end) + "…"; };
  const auto too_long = std::ranges::partition_point(
      ends, [&](std::size_t end) { return text_width(font, cut_at(end)) <= room; });
  return cut_at(too_long == ends.begin() ? 0 : *(too_long - 1));
}

float draw_formula(ImFont* font, ImVec2 left_top, Ink ink, std::string_view formula) {
  const float start = left_top.x;
  ImFont* small = subscript_font(font);
  for (const auto& [piece, subscript] : core::text::formula_pieces(formula)) {
    ImFont* used = subscript ? small : font;
    const float drop = subscript ? std::round(platform::font_size(font) * subscript_drop) : 0;
    ImGui::GetWindowDrawList()->AddText(used, platform::font_size(used),
                                        {std::round(left_top.x), std::round(left_top.y + drop)}, ink.packed,
                                        piece.data(), piece.data() + piece.size());
    left_top.x += text_width(used, piece);
  }
  return left_top.x - start;
}

float formula_width(ImFont* font, std::string_view formula) {
  float width = 0;
  ImFont* small = subscript_font(font);
  for (const auto& [piece, subscript] : core::text::formula_pieces(formula))
    width += text_width(subscript ? small : font, piece);
  return width;
}

void outline(ImVec2 min, ImVec2 max, Ink ink, float t, ImDrawList* list) {
  const ImU32 color = ink.packed;
  list->AddRectFilled(min, {max.x, min.y + t}, color);
  list->AddRectFilled({min.x, max.y - t}, max, color);
  list->AddRectFilled({min.x, min.y + t}, {min.x + t, max.y - t}, color);
  list->AddRectFilled({max.x - t, min.y + t}, {max.x, max.y - t}, color);
}

void hatch(ImVec2 min, ImVec2 max, float step, Ink ink) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float height = max.y - min.y;
  list->PushClipRect(min, max, true);
  const float phase = std::fmod(min.x + max.y, step);  // fixed to the screen, so that hatches align
  for (float x = min.x - height - phase; x < max.x; x += step)
    list->AddLine({x, max.y}, {x + height, min.y}, ink.packed);
  list->PopClipRect();
}

void draw_arrow(ImVec2 from, ImVec2 to, Ink ink, float head) {
  const auto sign = [](float x) { return static_cast<float>((x > 0) - (x < 0)); };
  const float dx = sign(to.x - from.x), dy = sign(to.y - from.y);
  const ImVec2 low{std::min(from.x, to.x), std::min(from.y, to.y)},
      high{std::max(from.x, to.x), std::max(from.y, to.y)};
  draw_rect({std::floor(low.x), std::floor(low.y)},
            {std::floor(high.x) + (dy != 0), std::floor(high.y) + (dx != 0)}, ink);
  const ImVec2 tip{std::floor(to.x) + 0.5f, std::floor(to.y) + 0.5f};
  const ImVec2 back{tip.x - dx * head, tip.y - dy * head};
  const float half = head * 0.5f;
  ImGui::GetWindowDrawList()->AddTriangleFilled(tip, {back.x - dy * half, back.y + dx * half},
                                                {back.x + dy * half, back.y - dx * half}, ink.packed);
}

std::size_t label_step(float pitch, float room) {
  return core::figures::label_step(pitch, room);
}

std::string date_text(std::int64_t seconds) {
  if (seconds == 0) return "";
  const auto local = [](std::time_t time) {
    std::tm fields{};
    localtime_r(&time, &fields);
    return fields;
  };
  const std::tm then = local(static_cast<std::time_t>(seconds)), now = local(std::time(nullptr));
  const bool is_today = then.tm_year == now.tm_year && then.tm_yday == now.tm_yday;
  char text[32];
  std::strftime(text, sizeof text,
                is_today                      ? "today, %H:%M"
                : then.tm_year == now.tm_year ? "%e %b"
                                              : "%e %b %Y",
                &then);
  return text;
}

std::string visible_token(std::string_view token) {
  const std::string_view inner = core::text::trimmed(token, " ");
  const std::size_t leading =
      inner.empty() ? token.size() : static_cast<std::size_t>(inner.data() - token.data());
  std::string text;
  for (std::size_t k = 0; k < token.size(); ++k) {
    const bool is_outer = k < leading || k >= leading + inner.size();
    if (is_outer)
      text += "·";
    else if (token[k] == '\n')
      text += "⏎";
    else if (token[k] == '\t')
      text += "→";
    else
      text += token[k];
  }
  return text;
}

std::string quoted_token(std::string_view token) {
  return "‘" + visible_token(token) + "’";
}

std::string count_text(std::size_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t k = digits.size(); k > 3; k -= 3) digits.insert(k - 3, 1, ',');
  return digits;
}

std::string signed_text(double value, int decimals) {
  return (value > 0 ? "+" : "") + fixed(value, decimals);
}

float centered_y(ImFont* font, float top, float height) {
  return std::round(top + (height - platform::font_size(font)) / 2);
}

float draw_text(ImFont* font, ImVec2 pos, Rgb color, std::string_view text) {
  return draw_text(font, pos, Align::left_top, color, text);
}

void draw_label(const Frame& frame, ImFont* font, ImVec2 row, Rgb color, std::string_view words) {
  draw_text(font, {row.x, centered_y(font, row.y, frame.metrics.frame)}, color, words);
}

void draw_text_right(ImFont* font, float right, float y, Rgb color, std::string_view text) {
  draw_text(font, {std::floor(right - text_width(font, text)), y}, color, text);
}

void draw_text_within(ImFont* font, ImVec2 pos, float width, Rgb color, const std::string& text) {
  const std::string shown = shortened(font, text, width);
  draw_text(font, pos, color, shown);
  const ImVec2 end(pos.x + width, pos.y + platform::font_size(font));
  if (shown != text && hovers(pos, end)) ImGui::SetTooltip("%s", text.c_str());
}

void draw_lines(ImFont* font, ImVec2 pos, float width, float pitch, Rgb color, std::string_view text,
                std::size_t max_lines) {
  for (std::size_t k = 1; k <= max_lines && !text.empty(); ++k, pos.y += pitch) {
    const std::size_t length = k == max_lines ? text.size() : line_length(font, width, text);
    draw_text(font, pos, color, shortened(font, std::string(text.substr(0, length)), width));
    text.remove_prefix(length);
    if (text.starts_with(' ')) text.remove_prefix(1);
  }
}

ImVec2 draw_prose(ImFont* font, ImVec2 pos, float width, Rgb color, std::string_view text) {
  constexpr float line_pitch_ratio = 1.3f;
  const float pitch = std::round(platform::font_size(font) * line_pitch_ratio);
  const ImU32 ink = packed(color, ImGui::GetStyle().Alpha);  // lowered inside BeginDisabled
  ImVec2 size{0, 0};
  do {
    const std::size_t length = line_length(font, width, text);
    const std::string_view line = text.substr(0, length);
    draw_text(font, {pos.x, pos.y + size.y + std::floor((pitch - platform::font_size(font)) / 2)},
              Align::left_top, ink, line);
    size = {std::max(size.x, text_width(font, line)), size.y + pitch};
    text.remove_prefix(length);
    if (text.starts_with(' ') || text.starts_with('\n')) text.remove_prefix(1);
  } while (!text.empty());
  return size;
}

void paragraph(ImFont* font, Rgb color, float width, std::string_view text) {
  ImGui::Dummy(draw_prose(font, ImGui::GetCursorScreenPos(), width, color, text));
}

void begin_note(const Frame& frame, const char* name, Rgb border, ImGuiWindowFlags flags) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.metrics.px(12), frame.metrics.px(10)});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, frame.metrics.px(3));
  ImGui::PushStyleColor(ImGuiCol_WindowBg, vec(frame.palette.background.raised));
  ImGui::PushStyleColor(ImGuiCol_Border, vec(border));
  ImGui::Begin(name, nullptr,
               flags | ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_AlwaysAutoResize |
                   ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoFocusOnAppearing | ImGuiWindowFlags_NoNav);
  ImGui::PopStyleColor(2);
  ImGui::PopStyleVar(3);
}

void section_heading(const Frame& frame, float width, const char* name, const std::string& remark) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = frame.metrics.px(20), line = frame.metrics.px(14);
  draw_text(frame.fonts.sans13, {at.x, centered_y(frame.fonts.sans13, at.y, line)}, frame.palette.dim, name);
  if (!remark.empty()) {
    const float y = centered_y(frame.fonts.mono13, at.y, line);
    draw_text_right(frame.fonts.mono13, at.x + width, y, frame.palette.faint, remark);
  }
  ImGui::Dummy({width, height});
}

bool hovers(ImVec2 min, ImVec2 max) {
  return ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(min, max);
}

Rect window_rect() {
  const ImVec2 min = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  return {min, {min.x + size.x, min.y + size.y}};
}

void tooltip(const std::string& text) {
  if (!ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) return;
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(ImGui::GetFontSize() * 24);
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

namespace {

using core::lessons::Term;

/// A word with its punctuation, its position, and the term that it begins or continues.
struct PlacedWord {
  std::string_view word;
  float x = 0, width = 0;
  int line = 0;
  const Term* term = nullptr;
};

/// Returns the word without surrounding punctuation.
std::string_view without_punctuation(std::string_view word) {
  for (bool again = true; again && !word.empty();) {
    again = false;
    for (const std::string_view mark : {".", ",", ":", ";", "?", "!", "(", ")", "“", "”"}) {
      if (word.starts_with(mark)) word.remove_prefix(mark.size()), again = true;
      if (word.ends_with(mark)) word.remove_suffix(mark.size()), again = true;
    }
  }
  return word;
}

/// Returns the term of a word, singular or plural, or nullptr.
const Term* term_of(std::string word) {
  if (const Term* term = core::lessons::find_term(word)) return term;
  if (word.ends_with("ies")) return core::lessons::find_term(word.substr(0, word.size() - 3) + "y");
  if (word.ends_with("s")) return core::lessons::find_term(word.substr(0, word.size() - 1));
  return nullptr;
}

/// Returns whether a word such as "W_q" is drawn with a subscript; "d_head" is a name and is not.
bool is_symbol(std::string_view word) {
  const std::string_view symbol = without_punctuation(word);
  return symbol.size() == 3 && symbol[1] == '_';
}

float piece_width(ImFont* font, std::string_view word) {
  return is_symbol(word) ? formula_width(font, word) : text_width(font, word);
}

std::vector<PlacedWord> pieces_of(ImFont* font, float width, std::string_view text) {
  const float space = text_width(font, " ");
  std::vector<PlacedWord> pieces;
  float x = 0;
  int line = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word.empty()) continue;
    const float w = piece_width(font, word);
    if (x > 0 && x + w > width) x = 0, ++line;
    pieces.push_back({word, x, w, line});
    x += w + space;
  }
  return pieces;
}

/// Finds the first occurrence of each term of one or two words.
void find_terms(std::vector<PlacedWord>& pieces) {
  std::set<const Term*> known;
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    const std::string word(without_punctuation(pieces[k].word));
    const bool pair = k + 1 < pieces.size() && pieces[k + 1].line == pieces[k].line;
    const Term* two =
        pair ? term_of(word + " " + std::string(without_punctuation(pieces[k + 1].word))) : nullptr;
    const Term* term = two ? two : term_of(word);
    if (!term || !known.insert(term).second) continue;
    pieces[k].term = term;
    if (two) pieces[++k].term = term;
  }
}

float line_height(const Frame& frame, ImFont* font) {
  return platform::font_size(font) + frame.metrics.px(7);
}

/// Draws a dotted line under a term and explains it on hover.
void underline_term(const Frame& frame, const Term& term, ImVec2 min, ImVec2 max, float underline) {
  for (float x = min.x; x < max.x; x += frame.metrics.px(4))
    draw_rect({x, underline}, {x + frame.metrics.px(2), underline + 1}, frame.palette.faint);
  if (hovers(min, max)) explain_term(frame, term);
}

}  // namespace

void explain_term(const Frame& frame, const Term& term, const std::string& remark) {
  ImGui::BeginTooltip();
  const float width = frame.metrics.px(300);
  paragraph(frame.fonts.sans14, frame.palette.text, width, term.word);
  paragraph(frame.fonts.sans14, frame.palette.dim, width, term.meaning);
  if (!remark.empty()) paragraph(frame.fonts.sans14, frame.palette.faint, width, remark);
  ImGui::EndTooltip();
}

const Term* term_of(Stage stage) {
  constexpr std::array words{"embedding",
                             "embedding",
                             "query",
                             "key",
                             "value",
                             "QK norm",
                             "QK norm",
                             "rotary embedding",
                             "rotary embedding",
                             "score",
                             "scale",
                             "soft-capping",
                             "relative position bias",
                             "relative position bias",
                             "mask",
                             "−∞",
                             "softmax",
                             "mask",
                             "row",
                             "weight",
                             "dropout",
                             "kept weight",
                             "context vector",
                             "concatenate",
                             "output projection"};
  static_assert(words.size() == static_cast<std::size_t>(Stage::output) + 1);
  return core::lessons::find_term(words.at(static_cast<std::size_t>(stage)));
}

void draw_glossary_line(const Frame& frame, ImFont* font, Rgb color, ImVec2 left_middle,
                        const std::string& text) {
  draw_text(font, left_middle, Align::left_middle, color, text);
  std::vector<PlacedWord> pieces = pieces_of(font, FLT_MAX, text);
  find_terms(pieces);
  const float half = std::round(platform::font_size(font) * 0.56f);
  for (const PlacedWord& piece : pieces) {
    if (!piece.term) continue;
    const std::string_view word = without_punctuation(piece.word);
    const float left = left_middle.x + piece.x, right = left + text_width(font, word);
    underline_term(frame, *piece.term, {left, left_middle.y - half}, {right, left_middle.y + half},
                   std::round(left_middle.y + half));
  }
}

void draw_glossary_text(const Frame& frame, ImFont* font, Rgb color, float width, const std::string& text) {
  std::vector<PlacedWord> pieces = pieces_of(font, width, text);
  find_terms(pieces);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = line_height(frame, font);
  for (const PlacedWord& piece : pieces) {
    const ImVec2 pos(at.x + piece.x, at.y + static_cast<float>(piece.line) * height);
    if (is_symbol(piece.word))
      draw_formula(font, pos, color, piece.word);
    else
      draw_text(font, pos, color, piece.word);
    if (!piece.term) continue;
    const ImVec2 end(pos.x + piece.width, pos.y + height);
    frame.landmarks.mark(std::string("word/") + piece.term->word, pos, end);
    underline_term(frame, *piece.term, pos, end, pos.y + platform::font_size(font) + 1);
  }
  ImGui::Dummy({width, pieces.empty() ? 1 : static_cast<float>(pieces.back().line + 1) * height});
}

float glossary_text_height(const Frame& frame, ImFont* font, float width, const std::string& text) {
  const std::vector<PlacedWord> pieces = pieces_of(font, width, text);
  return pieces.empty() ? 1 : static_cast<float>(pieces.back().line + 1) * line_height(frame, font);
}

}  // namespace app::widgets
