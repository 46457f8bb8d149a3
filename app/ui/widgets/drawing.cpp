#include "app/ui/widgets/drawing.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <optional>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/out/drawing.hpp"
#include "core/system/fonts.hpp"

namespace app::widgets {

std::string inspected(double value) {
  const double size = std::abs(value);
  if (value == 0) return "0";
  const bool told = !std::isfinite(value) || (size < 1e5 && size >= 5e-5);
  return told ? fixed(value, 4) : scientific(value);
}

bool link(const Frame& frame, const std::string& name, ImFont* font, ImVec2 at, Align align, Rgb color,
          const std::string& text) {
  const float width = text_width(font, text), half = std::round(platform::font_size(font) * 0.6f);
  const float left = align == Align::right_middle ? at.x - width
                     : align == Align::middle     ? at.x - width / 2
                                                  : at.x;
  const ImVec2 min{std::round(left), std::round(at.y) - half};
  platform::move_to(min);
  const bool pressed = hit_area(name.c_str(), {width, 2 * half});
  frame.landmarks.mark_item(name);
  const bool focused = ImGui::IsItemFocused() && ImGui::GetIO().NavVisible;
  draw_text(font, at, align, packed(color), text);
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (ImGui::IsItemHovered()) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    list->AddRectFilled({min.x, min.y + 2 * half - 1}, {min.x + std::round(width), min.y + 2 * half},
                        packed(color));
  }
  if (focused)
    outline(list, {min.x - 3, min.y - 1}, {min.x + width + 3, min.y + 2 * half + 1},
            packed(frame.palette.accent), 2);
  return pressed;
}

void Pen::rule() {
  skip(10);
  ImGui::GetWindowDrawList()->AddRectFilled({left, std::round(y)}, {right, std::round(y) + 1},
                                            packed(frame.palette.line));
  skip(12);
}

void Pen::heading(const std::string& words) {
  skip(8);
  draw_text(frame.fonts.sans16, {left, y}, Align::left_middle, packed(frame.palette.text),
            shortened(frame.fonts.sans16, words, right - left));
  skip(14);
}

void Pen::pair(const std::string& words, const std::string& number) {
  skip(10);
  const float room = right - left - text_width(frame.fonts.mono14, number) - frame.metrics.px(8);
  glossed_line(frame, frame.fonts.sans14, frame.palette.dim, {left, y},
               shortened(frame.fonts.sans14, words, room));
  draw_text(frame.fonts.mono14, {right, y}, Align::right_middle, packed(frame.palette.text), number);
  skip(10);
}

bool Pen::linked_pair(const std::string& name, const std::string& words, const std::string& number) {
  skip(10);
  const float room = right - left - text_width(frame.fonts.mono14, number) - frame.metrics.px(8);
  draw_text(frame.fonts.sans14, {left, y}, Align::left_middle, packed(frame.palette.dim),
            shortened(frame.fonts.sans14, words, room));
  const bool pressed =
      link(frame, name, frame.fonts.mono14, {right, y}, Align::right_middle, frame.palette.operand, number);
  skip(10);
  return pressed;
}

void Pen::share(const std::string& words, double value, double end) {
  skip(10);
  const float from = left + std::round((right - left) * 0.3f),
              to = right - text_width(frame.fonts.mono14, "−00.0000") - frame.metrics.px(8),
              zero = std::round((from + to) / 2), half = frame.metrics.px(5);
  glossed_line(frame, frame.fonts.sans14, frame.palette.dim, {left, y},
               shortened(frame.fonts.sans14, words, from - left - frame.metrics.px(6)));
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled({from, y - half}, {to, y + half}, packed(frame.palette.control.rest));
  const double part = end > 0 && std::isfinite(value) ? std::clamp(value / end, -1.0, 1.0) : 0;
  const float at = zero + std::round(static_cast<float>(part) * (to - from) / 2);
  list->AddRectFilled(
      {std::min(zero, at), y - half}, {std::max(zero, at), y + half},
      packed(render::color_at(frame.displayed.look.colors.diverging, frame.palette.dark, 0.5 + part / 2)));
  list->AddRectFilled({zero, y - half - 2}, {zero + 1, y + half + 2}, packed(frame.palette.faint));
  draw_text(frame.fonts.mono14, {right, y}, Align::right_middle, packed(frame.palette.text),
            inspected(value));
  skip(11);
}

void Pen::prose(const std::string& words, Rgb color) {
  y = std::round(y);
  const ImVec2 size = draw_prose(frame.fonts.sans14, {left, y}, right - left, color, words);
  platform::move_to({left, y});
  ImGui::Dummy(size);
  y += size.y;
  skip(4);
}

namespace {

constexpr float chip_margin = 3;
constexpr float subscript_size = 0.76f, subscript_drop = 0.36f;
constexpr float height_of_figures = 0.626f;  // of DejaVu's line box

/// From the top of a line to the middle of its figures, so that sizes next to each other share a baseline.
float middle_of_figures(ImFont* font) {
  return std::round(platform::ascent(font)) - std::round(platform::font_size(font) * height_of_figures) / 2;
}

/// The loaded font nearest to a subscript's size: a font drawn smaller than it was loaded is blurred.
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

}  // namespace

namespace {

/// Part of a text that a font can draw, or a character that no font can.
struct Run {
  std::string_view text;
  char32_t missing = 0;
};

/// Takes off the text what a font can draw up to a character that it cannot, or that character. What the font
/// lacks is asked for; until it has been looked for, it is drawn as it is.
Run take_run(ImFont* font, std::string_view& text) {
  auto* const characters = static_cast<Characters*>(ImGui::GetIO().UserData);
  Run run{text};
  for (std::size_t at = 0; characters && at < text.size();) {
    const bool is_ascii = static_cast<unsigned char>(text[at]) < 0x80;
    const auto character = is_ascii ? std::nullopt : core::text::first_character(text.substr(at));
    if (character && !platform::has_letter(font, character->value)) {
      characters->wanted.insert(character->value);
      if (characters->missing.contains(character->value)) {
        run = at > 0 ? Run{text.substr(0, at)} : Run{text.substr(0, character->size), character->value};
        break;
      }
    }
    at += character ? character->size : 1;
  }
  text.remove_prefix(run.text.size());
  return run;
}

float run_width(ImFont* font, const Run& run) {
  const std::string chip = run.missing ? core::text::code_point_name(run.missing) : "";
  ImFont* used = run.missing ? subscript_font(font) : font;
  const std::string_view text = run.missing ? std::string_view(chip) : run.text;
  const float width =
      used->CalcTextSizeA(platform::font_size(used), FLT_MAX, 0, text.data(), text.data() + text.size()).x;
  return run.missing ? width + 2 * chip_margin : width;
}

/// A box with the number of a character that cannot be drawn; hovered, it says why.
void draw_chip(ImFont* font, ImVec2 at, ImU32 color, char32_t c) {
  ImFont* small = subscript_font(font);
  const std::string words = core::text::code_point_name(c);
  const ImVec2 end{at.x + run_width(font, {{}, c}), at.y + platform::font_size(font)};
  ImDrawList* list = ImGui::GetWindowDrawList();
  outline(list, {at.x + 1, at.y}, {end.x - 1, end.y}, color, 1);
  list->AddText(small, platform::font_size(small),
                {at.x + chip_margin, centred_y(small, at.y, platform::font_size(font))}, color,
                words.c_str());
  if (ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(at, end))
    ImGui::SetTooltip("%s", core::fonts::missing_words({c}).c_str());
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

void draw_text(ImFont* font, ImVec2 position, Align align, ImU32 color, std::string_view text) {
  if (text.empty()) return;
  if (align == Align::middle) position.x -= text_width(font, text) / 2;
  if (align == Align::right_middle) position.x -= text_width(font, text);
  if (align != Align::left_top) position.y -= middle_of_figures(font);
  while (!text.empty()) {
    const Run run = take_run(font, text);
    const ImVec2 at{std::round(position.x), std::round(position.y)};
    if (run.missing)
      draw_chip(font, at, color, run.missing);
    else
      ImGui::GetWindowDrawList()->AddText(font, platform::font_size(font), at, color, run.text.data(),
                                          run.text.data() + run.text.size());
    position.x += run_width(font, run);
  }
}

namespace {

/// Whether all of a text is as wide as it is high, as Chinese, Japanese and Korean are.
bool is_wide(std::string_view text) {
  const std::u32string characters = core::text::repaired_characters(text);
  return !characters.empty() && std::ranges::all_of(characters, core::text::is_wide);
}

/// One character above the other, the last one at the bottom.
void draw_text_upright(ImFont* font, ImVec2 bottom_middle, ImU32 color, std::string_view text) {
  float y = bottom_middle.y - text_width(font, text);
  while (const auto character = core::text::first_character(text)) {
    const std::string_view one = text.substr(0, character->size);
    const float width = text_width(font, one);
    draw_text(font, {bottom_middle.x - width / 2, y}, Align::left_top, color, one);
    y += width;
    text.remove_prefix(one.size());
  }
}

}  // namespace

void draw_text_turned(ImFont* font, ImVec2 bottom_middle, ImU32 color, std::string_view text) {
  if (is_wide(text)) return draw_text_upright(font, bottom_middle, color, text);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 start{std::round(bottom_middle.x - middle_of_figures(font)), std::round(bottom_middle.y)};
  // It is drawn level and its corners are turned about the start.
  const int first = list->VtxBuffer.Size;
  platform::whole_text(list, font, platform::font_size(font), start, color, text.data(),
                       text.data() + text.size());
  for (int k = first; k < list->VtxBuffer.Size; ++k) {
    ImVec2& p = list->VtxBuffer[k].pos;
    p = {start.x + (p.y - start.y), start.y - (p.x - start.x)};
  }
}

std::string shortened(ImFont* font, const std::string& text, float room) {
  std::size_t looked_at = std::min<std::size_t>(text.size(), 64);  // of a token of any length
  while (looked_at < text.size() && text_width(font, std::string_view(text).substr(0, looked_at)) <= room)
    looked_at = std::min(2 * looked_at, text.size());
  if (looked_at == text.size() && text_width(font, text) <= room) return text;
  std::vector<std::size_t> ends{0};  // of its beginnings
  for (std::size_t at = 1; at < looked_at; ++at)
    if (core::text::starts_character(text[at])) ends.push_back(at);
  const auto cut_at = [&](std::size_t end) { return text.substr(0, end) + "…"; };
  const auto too_long = std::ranges::partition_point(
      ends, [&](std::size_t end) { return text_width(font, cut_at(end)) <= room; });
  return cut_at(too_long == ends.begin() ? 0 : *(too_long - 1));
}

float draw_formula(ImFont* font, ImVec2 left_top, ImU32 color, std::string_view formula) {
  const float start = left_top.x;
  ImFont* small = subscript_font(font);
  for (const auto& [piece, subscript] : core::text::formula_pieces(formula)) {
    ImFont* used = subscript ? small : font;
    const float drop = subscript ? std::round(platform::font_size(font) * subscript_drop) : 0;
    ImGui::GetWindowDrawList()->AddText(used, platform::font_size(used),
                                        {std::round(left_top.x), std::round(left_top.y + drop)}, color,
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

void outline(ImDrawList* list, ImVec2 min, ImVec2 max, ImU32 color, float t) {
  list->AddRectFilled(min, {max.x, min.y + t}, color);
  list->AddRectFilled({min.x, max.y - t}, max, color);
  list->AddRectFilled({min.x, min.y + t}, {min.x + t, max.y - t}, color);
  list->AddRectFilled({max.x - t, min.y + t}, {max.x, max.y - t}, color);
}

void hatch(ImDrawList* list, ImVec2 min, ImVec2 max, float step, ImU32 color) {
  const float height = max.y - min.y;
  list->PushClipRect(min, max, true);
  const float phase = std::fmod(min.x + max.y, step);  // fixed to the screen, so that hatches meet
  for (float x = min.x - height - phase; x < max.x; x += step)
    list->AddLine({x, max.y}, {x + height, min.y}, color);
  list->PopClipRect();
}

void draw_arrow(ImDrawList* list, ImVec2 from, ImVec2 to, ImU32 color, float head) {
  const float dx = to.x > from.x   ? 1.0f
                   : to.x < from.x ? -1.0f
                                   : 0.0f,
              dy = to.y > from.y   ? 1.0f
                   : to.y < from.y ? -1.0f
                                   : 0.0f;
  const ImVec2 low{std::min(from.x, to.x), std::min(from.y, to.y)},
      high{std::max(from.x, to.x), std::max(from.y, to.y)};
  list->AddRectFilled({std::floor(low.x), std::floor(low.y)},
                      {std::floor(high.x) + (dy != 0), std::floor(high.y) + (dx != 0)}, color);
  const ImVec2 tip{std::floor(to.x) + 0.5f, std::floor(to.y) + 0.5f};
  const ImVec2 back{tip.x - dx * head, tip.y - dy * head};
  const float half = head * 0.5f;
  list->AddTriangleFilled(tip, {back.x - dy * half, back.y + dx * half},
                          {back.x + dy * half, back.y - dx * half}, color);
}

std::size_t label_step(float pitch, float room) {
  return core::figures::label_step(pitch, room);
}

}  // namespace app::widgets
