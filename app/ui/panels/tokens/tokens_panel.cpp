#include "app/ui/panels/tokens/tokens_panel.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <utility>

#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"

namespace app::panels {

using core::attention::Stage;

namespace {

/// Screen layout of the rows and columns of the token view.
struct TokenLayout {
  float queries = 0, lines = 0, keys = 0, weight_sums = 0;  ///< left edges; lines run from lines to keys
  float query_width = 0, key_width = 0, bar_width = 0, right = 0;
  float top = 0, pitch = 1, box = 1;  ///< of row 0, distance between rows, height of a token's box
  std::size_t first = 0, end = 0;     ///< visible rows

  float middle(std::size_t row) const { return top + (static_cast<float>(row) + 0.5f) * pitch; }
};

constexpr std::size_t max_chip_lines = 3;

bool has_lines(const Frame& frame, std::size_t head) {
  return frame.displayed.look.tokens.silent_heads.count(head) == 0;
}

void draw_chip(const Frame& frame, std::size_t h, ImVec2 at, float width) {
  const Palette& p = frame.palette;
  const bool on = has_lines(frame, h);
  const std::string name = "tokens/head/" + std::to_string(h);
  platform::move_to(at);
  ImGui::PushStyleColor(ImGuiCol_Button, vec(on ? p.control.active : p.control.rest));
  const bool pressed = ImGui::Button(("##" + name).c_str(), {width, frame.metrics.frame});
  ImGui::PopStyleColor();
  frame.landmarks.mark_item(name);
  tooltip((on ? "Hides the lines of head " : "Shows the lines of head ") + std::to_string(h));
  const float middle = at.y + frame.metrics.frame / 2, half = frame.metrics.px(5);
  const ImVec2 min{at.x + frame.metrics.px(8), std::round(middle - half)},
      max{min.x + 2 * half, min.y + 2 * half};
  if (on)
    draw_rect(min, max, p.head(h), frame.metrics.px(2));
  else
    outline(min, max, p.faint, 1);
  draw_text(frame.fonts.mono13, {at.x + width - frame.metrics.px(7), middle}, Align::right_middle,
            on ? p.text : p.faint, std::to_string(h));
  if (!pressed) return;
  std::set<std::size_t> silent = frame.pending.look.tokens.silent_heads;
  if (on)
    silent.insert(h);
  else
    silent.erase(h);
  frame.commands.add(set<&TokensLook::silent_heads>(std::move(silent)));
}

}  // namespace

std::vector<std::size_t> heads_with_lines(const Frame& frame) {
  std::vector<std::size_t> heads;
  for (std::size_t h = 0; h < frame.displayed.trace.n_heads(); ++h)
    if (has_lines(frame, h)) heads.push_back(h);
  return heads;
}

namespace {

/// Draws a toggle for every head, and buttons for all of them; scrolls if there are very many.
void draw_token_chips(const Frame& frame, float width) {
  const auto& m = frame.metrics;
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const std::size_t n = frame.displayed.trace.n_heads();
  const float label = m.px(52), buttons = m.px(110), gap = m.px(4), pitch = m.frame + gap;
  const float chip = m.px(24) + text_width(frame.fonts.mono13, std::to_string(n - 1)) + m.px(8);
  const float room = std::max(chip, width - label - buttons);
  const auto per_line = std::max<std::size_t>(1, static_cast<std::size_t>((room + gap) / (chip + gap)));
  const std::size_t lines = (n + per_line - 1) / per_line;
  const float height = static_cast<float>(std::min(lines, max_chip_lines)) * pitch;
  draw_text(frame.fonts.sans15, {origin.x, origin.y + m.frame / 2}, Align::left_middle, frame.palette.dim,
            "heads");

  const float chips_width = static_cast<float>(std::min(n, per_line)) * (chip + gap);
  platform::move_to({origin.x + label, origin.y});
  platform::begin_child(
      "chips", {chips_width + ImGui::GetStyle().ScrollbarSize, height}, false,
      lines > max_chip_lines ? 0 : ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  const ImVec2 first = ImGui::GetCursorScreenPos();
  for (std::size_t h = 0; h < n; ++h)
    draw_chip(frame, h,
              {first.x + static_cast<float>(h % per_line) * (chip + gap),
               first.y + static_cast<float>(h / per_line) * pitch},
              chip);
  ImGui::EndChild();

  platform::move_to({origin.x + label + chips_width + m.px(10), origin.y});
  if (n > 1) {
    if (button(frame, "tokens/all", "all", "Shows the lines of every head"))
      frame.commands.add(set<&TokensLook::silent_heads>({}));
    ImGui::SameLine();
    if (button(frame, "tokens/none", "none", "Hides all lines")) {
      std::set<std::size_t> all;
      for (std::size_t h = 0; h < n; ++h) all.insert(h);
      frame.commands.add(set<&TokensLook::silent_heads>(std::move(all)));
    }
  }
  reserve_room(origin, {width, height});
}

constexpr float max_gray_alpha = 0.21f;
constexpr int line_segments = 22,
              smooth_line_segments = 56;  // segments of a line; more if there are few lines

const std::vector<std::string>& tokens_of(const Frame& frame) {
  return frame.displayed.sequence().tokens;
}

const std::vector<std::string>& keys_of(const Frame& frame) {
  return frame.displayed.sequence().keys();
}

/// Returns the next of 1, 2, 5, 10 … times a power of ten.
double round_up_axis(double largest) {
  if (!(largest > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(largest)));
  for (const double step : {1.0, 2.0, 5.0})
    if (largest <= step * power * (1 + 1e-9)) return step * power;
  return 10 * power;
}

struct BoxStyle {
  const std::vector<std::string>& tokens;
  Rgb background, ink;
  bool hatched = false;
  std::optional<Rgb> outline{};
};

void draw_box(const Frame& frame, const TokenLayout& l, std::size_t row, float left, float width,
              const BoxStyle& style) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float middle = l.middle(row), top = std::round(middle - l.box / 2);
  const ImVec2 min{left, top}, max{left + width, top + l.box};
  const float rounding = l.box >= frame.metrics.px(20) ? frame.metrics.px(3) : 0;
  draw_rect(min, max, style.background, rounding);
  if (style.hatched) hatch(min, max, frame.metrics.px(6), packed(frame.palette.hatch.lines, 0.6f));
  const float outline_width = l.pitch - l.box >= 4 ? 2 : 1;  // outlines of neighbors do not touch
  if (style.outline)
    platform::rect(list, {min.x - outline_width / 2, min.y - outline_width / 2},
                   {max.x + outline_width / 2, max.y + outline_width / 2}, packed(*style.outline),
                   outline_width, rounding);
  const float index = text_width(frame.fonts.mono12, std::to_string(style.tokens.size() - 1));
  const float left_text = left + frame.metrics.px(8) + index;
  draw_text(frame.fonts.mono12, {left_text, middle}, Align::right_middle, frame.palette.faint,
            std::to_string(row));
  ImFont* font = l.box >= frame.metrics.px(20) ? frame.fonts.sans15 : frame.fonts.sans12;
  const float from = left_text + frame.metrics.px(8);
  draw_text(font, {from, middle}, Align::left_middle, style.ink,
            shortened(font, visible_token(style.tokens[row]), left + width - from - frame.metrics.px(4)));
}

void draw_query(const Frame& frame, const TokenLayout& l, std::size_t i) {
  const Palette& p = frame.palette;
  const bool chosen = frame.displayed.look.tokens.pinned_query == i,
             hovered = frame.displayed.look.tokens.hovered_query == i;
  platform::move_to({l.queries, std::round(l.middle(i) - l.pitch / 2)});
  const std::string name = "tokens/query/" + std::to_string(i);
  const bool pressed = hit_area(name.c_str(), {l.query_width, l.pitch});
  frame.landmarks.mark_item(name);
  const bool focused = has_keyboard_focus();
  if (ImGui::IsItemHovered()) {
    frame.commands.add(set<&TokensLook::hovered_query>(i));
    if (text_width(frame.fonts.sans12, tokens_of(frame)[i]) > l.query_width - frame.metrics.px(44))
      ImGui::SetTooltip("%s", tokens_of(frame)[i].c_str());
  }
  if (pressed) frame.commands.add(PinQuery{i});
  BoxStyle style{tokens_of(frame), hovered || chosen ? p.control.active : p.control.rest,
                 hovered || chosen ? p.text : p.dim};
  if (chosen) style.outline = p.selection;
  if (focused) style.outline = p.accent;
  draw_box(frame, l, i, l.queries, l.query_width, style);
}

void draw_key(const Frame& frame, const TokenLayout& l, std::size_t j, bool attended) {
  const Palette& p = frame.palette;
  const auto query = frame.displayed.look.tokens.query();
  const bool is_masked = query && frame.displayed.trace.at(Stage::mask)(*query, j) == 0 && !attended,
             hovered = frame.displayed.look.tokens.hovered_key == j;
  const ImVec2 min{l.keys, l.middle(j) - l.pitch / 2}, max{l.keys + l.key_width, l.middle(j) + l.pitch / 2};
  frame.landmarks.mark("tokens/key/" + std::to_string(j), min, max);
  if (hovers(min, max)) frame.commands.add(set<&TokensLook::hovered_key>(j));
  BoxStyle style{keys_of(frame),
                 is_masked ? p.hatch.background
                 : hovered ? p.control.active
                           : p.control.rest,
                 is_masked             ? p.faint
                 : attended || hovered ? p.text
                                       : p.dim,
                 is_masked};
  if (attended) style.outline = p.operand;
  draw_box(frame, l, j, l.keys, l.key_width, style);
}

/// Returns whether any head with lines gives the key enough weight for a line.
bool is_attended(const Frame& frame, const std::vector<std::size_t>& heads, std::size_t query,
                 std::size_t key) {
  return std::any_of(heads.begin(), heads.end(), [&](std::size_t h) {
    const double weight = frame.displayed.trace.at(Stage::weights, h)(query, key);
    return weight > 0 && weight >= frame.displayed.look.tokens.hide_below;
  });
}

/// Returns the summed weights; empty without a hovered or pinned query.
WeightSums sum_weights(const Frame& frame, const std::vector<std::size_t>& heads) {
  const auto query = frame.displayed.look.tokens.query();
  if (!query) return {};
  WeightSums weight_sums{std::vector<double>(frame.displayed.model.n_keys(), 0), 1};
  double largest = 0;
  for (std::size_t j = 0; j < weight_sums.sums.size(); ++j) {
    for (const std::size_t h : heads)
      weight_sums.sums[j] += frame.displayed.trace.at(Stage::weights, h)(*query, j);
    if (std::isfinite(weight_sums.sums[j])) largest = std::max(largest, weight_sums.sums[j]);
  }
  weight_sums.top =
      std::min(round_up_axis(largest), static_cast<double>(std::max<std::size_t>(1, heads.size())));
  return weight_sums;
}

/// Draws the queries at the left, which can be hovered and pressed, and the keys at the right.
void draw_token_boxes(const Frame& frame, const TokenLayout& l, const std::vector<std::size_t>& heads) {
  const auto query = frame.displayed.look.tokens.query();
  for (std::size_t row = l.first; row < l.end; ++row) {
    if (row < frame.displayed.model.n_tokens()) draw_query(frame, l, row);
    if (row < frame.displayed.model.n_keys())
      draw_key(frame, l, row, query && is_attended(frame, heads, *query, row));
  }
}

/// Height of a line between its ends: the curve of draw_token_lines() as a function of x.
struct TokenLineCurve {
  float from, to;

  /// Returns the share of the way down at x, 0 … 1; the control points of the curve are half way.
  float share(float x) const {
    const float wanted = (x - from) / (to - from);
    float low = 0, high = 1;
    for (int k = 0; k < 20; ++k) {
      const float t = (low + high) / 2, at = 1.5f * t - 1.5f * t * t + t * t * t;
      (at < wanted ? low : high) = t;
    }
    return low * low * (3 - 2 * low);
  }
};

/// Draws the tooltip of a line.
void draw_line_tooltip(const Frame& frame, const TokenLine& line) {
  const std::string words = describe_cell(frame, {Stage::weights, line.head, line.query, line.key}).heading;
  ImGui::BeginTooltip();
  platform::push_font(frame.fonts.sans14);
  ImGui::TextUnformatted(words.c_str());
  ImGui::TextColored(vec(frame.palette.dim), "weight in head %zu", line.head);
  platform::push_font(frame.fonts.mono14);
  ImGui::TextUnformatted(number_text(line.weight).c_str());
  ImGui::PopFont();
  ImGui::PopFont();
  ImGui::EndTooltip();
}

void draw_token_lines(const Frame& frame, const TokenLayout& l, const TokenLines& lines,
                      const std::vector<std::size_t>& heads) {
  const TokensLook& look = frame.displayed.look.tokens;
  const auto query = look.query();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float from = l.lines, to = l.keys - frame.metrics.px(4), control_offset = (to - from) * 0.5f;
  const float spread = std::min(frame.metrics.px(3), l.box / static_cast<float>(heads.size() + 1));
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const bool among_lines = ImGui::IsWindowHovered() && mouse.x > from && mouse.x < to;
  const float down = among_lines ? TokenLineCurve{from, to}.share(mouse.x) : 0;
  struct {
    const TokenLine* line = nullptr;
    ImVec2 a, b;
    float distance = 5;  // pixels; lines farther from the mouse are not hovered
  } nearest;
  const float density_factor = std::min(
      1.0f, std::sqrt(400 / static_cast<float>(lines.lines.size() + 1)));  // many grays would add up to black
  for (const TokenLine& line : lines.lines) {
    // Lines of queries out of view would add up to a pattern that shows none of them.
    const bool is_in_view = line.query >= l.first && line.query < l.end;
    if (!is_in_view && query != line.query && look.hovered_key != line.key) continue;
    if (std::max(line.query, line.key) < l.first || std::min(line.query, line.key) >= l.end) continue;
    const bool bright = look.hovered_key ? look.hovered_key == line.key && (!query || query == line.query)
                                         : !query || query == line.query;
    const bool gray = !bright && (query || look.hovered_key);
    const auto weight = static_cast<float>(std::min(line.weight, 1.0));
    const auto place = static_cast<float>(std::find(heads.begin(), heads.end(), line.head) - heads.begin());
    const float head_offset = gray ? 0 : (place - static_cast<float>(heads.size() - 1) / 2) * spread;
    const ImVec2 a{from, l.middle(line.query) + head_offset}, b{to, l.middle(line.key) + head_offset};
    const float least = query || look.hovered_key ? 0.45f : 0.12f * density_factor;
    const ImU32 color =
        gray ? packed(frame.palette.faint, max_gray_alpha * density_factor * (0.25f + 0.75f * weight))
             : packed(frame.palette.head(line.head), least + (1 - least) * weight);
    list->AddBezierCubic(a, {a.x + control_offset, a.y}, {b.x - control_offset, b.y}, b, color,
                         gray ? 1.0f : 1 + 3 * weight,
                         gray || density_factor < 1 ? line_segments : smooth_line_segments);
    const float away = std::abs(a.y + (b.y - a.y) * down - mouse.y);
    if (among_lines && !gray && away < nearest.distance) {
      nearest.line = &line;
      nearest.a = a, nearest.b = b, nearest.distance = away;
    }
  }
  if (!nearest.line) return;
  const ImVec2 a = nearest.a, b = nearest.b;
  list->AddBezierCubic(a, {a.x + control_offset, a.y}, {b.x - control_offset, b.y}, b,
                       packed(frame.palette.selection), 2, smooth_line_segments);
  frame.landmarks.mark("tokens/line", a, b);
  draw_line_tooltip(frame, *nearest.line);
}

/// Draws the sums as bars, one part for each head.
void draw_weight_sums(const Frame& frame, const TokenLayout& l, const WeightSums& weight_sums,
                      const std::vector<std::size_t>& heads) {
  const auto query = frame.displayed.look.tokens.query();
  const float half = std::min(frame.metrics.px(5), l.box / 2 - 1);
  if (!query)  // the place of the bars
    for (std::size_t j = l.first; j < std::min(l.end, frame.displayed.model.n_keys()); ++j)
      draw_rect({l.weight_sums, std::round(l.middle(j)) - half},
                {l.weight_sums + l.bar_width, std::round(l.middle(j)) + half}, frame.palette.control.rest);
  if (!query) return;
  std::string last_reason;  // about the keys above
  for (std::size_t j = l.first; j < std::min(l.end, weight_sums.sums.size()); ++j) {
    if (frame.displayed.trace.at(Stage::mask)(*query, j) == 0 && weight_sums.sums[j] == 0) {
      const std::string why = masked_reason(frame, *query, j);
      if (std::exchange(last_reason, why) != why)
        draw_text(frame.fonts.sans13, {l.weight_sums, std::round(l.middle(j))}, Align::left_middle,
                  frame.palette.faint, shortened(frame.fonts.sans13, why, l.right - l.weight_sums));
      continue;
    }
    last_reason.clear();
    const float middle = std::round(l.middle(j));
    draw_rect({l.weight_sums, middle - half}, {l.weight_sums + l.bar_width, middle + half},
              frame.palette.control.rest);
    double sum = 0;
    for (const std::size_t h : heads) {
      const double weight = frame.displayed.trace.at(Stage::weights, h)(*query, j), before = sum;
      if (!(weight > 0)) continue;
      sum += weight;
      const auto x = [&](double at) {
        return l.weight_sums + l.bar_width * static_cast<float>(std::min(at / weight_sums.top, 1.0));
      };
      draw_rect({x(before), middle - half}, {x(sum), middle + half}, frame.palette.head(h));
    }
    const bool attended = is_attended(frame, heads, *query, j);
    draw_text(frame.fonts.mono13, {l.right, middle}, Align::right_middle,
              attended ? frame.palette.text : frame.palette.faint,
              fixed(weight_sums.sums[j], weight_sums.sums[j] < 10 ? 4 : 3));
  }
}

constexpr std::size_t max_drawn_lines = 3000;
constexpr const char *keys_title = "Keys", *keys_words = "attended to by";

/// Returns the width of a title with its explanation on the same line.
float title_width(const Frame& frame, const char* title, const char* words) {
  return text_width(frame.fonts.sans16, title) + frame.metrics.px(10) + text_width(frame.fonts.sans13, words);
}

/// Returns the number of rows; queries at the left and keys at the right begin at the same top.
std::size_t n_rows(const Frame& frame) {
  return std::max(frame.displayed.model.n_tokens(), frame.displayed.model.n_keys());
}

/// Returns columns that share the width; queries and keys are as wide as their longest token and their title,
/// within limits.
TokenLayout columns(const Frame& frame, float left, float width) {
  const auto& m = frame.metrics;
  TokenLayout l;
  const float wide = std::max(m.px(86), std::min(m.px(130), width * 0.17f)),
              narrow = std::min(wide, std::max(m.px(86), title_width(frame, keys_title, keys_words)));
  float longest = 0;
  const core::attention::Sequence& sequence = frame.displayed.sequence();
  for (const auto* tokens : {&sequence.tokens, &sequence.keys()})
    for (const std::string& token : *tokens)
      longest = std::max(longest, text_width(frame.fonts.sans15, visible_token(token)));
  const float digits = text_width(frame.fonts.mono12, std::to_string(n_rows(frame) - 1));
  l.query_width = l.key_width = std::round(std::clamp(longest + digits + m.px(26), narrow, wide));
  const float number = text_width(frame.fonts.mono13, "0.0000") + m.px(10);
  l.bar_width = std::round(std::clamp(width * 0.15f, m.px(60), m.px(150)));
  l.queries = left + 2;  // room for an outline
  l.lines = l.queries + l.query_width + m.px(6);
  l.right = left + width;
  l.weight_sums = l.right - number - l.bar_width;
  l.keys = std::max(l.lines + m.px(40), l.weight_sums - m.px(22) - l.key_width);
  return l;
}

/// Makes the rows fill the height if they stay legible; else they scroll.
void rows(const Frame& frame, TokenLayout& l, float height) {
  const auto& m = frame.metrics;
  l.pitch = std::clamp(height / static_cast<float>(n_rows(frame)), m.px(16), m.px(150));
  l.pitch = std::floor(l.pitch);
  l.box = std::floor(std::min(m.px(30) + std::max(0.0f, l.pitch - m.px(84)) * 0.15f,
                              l.pitch - std::max(2.0f, l.pitch * 0.12f)));
}

std::string head_count(std::size_t n) {
  return n == 1 ? "one head" : std::to_string(n) + " heads";
}

void draw_titles(const Frame& frame, const TokenLayout& l, ImVec2 origin, const WeightSums& weight_sums,
                 std::size_t n_heads) {
  const float middle = origin.y + frame.metrics.px(8), below = origin.y + frame.metrics.px(26);
  const auto title = [&](float x, const char* words, const char* explanation, float room) {
    draw_text(frame.fonts.sans16, {x, middle}, Align::left_middle, frame.palette.text, words);
    const float all = title_width(frame, words, explanation);
    const float title_offset = all - text_width(frame.fonts.sans13, explanation);
    draw_text(frame.fonts.sans13, all <= room ? ImVec2(x + title_offset, middle) : ImVec2(x, below),
              Align::left_middle, frame.palette.dim, explanation);
  };
  title(l.queries, "Queries", "attend to →", l.keys - l.queries);
  title(l.keys, keys_title, keys_words, l.weight_sums - l.keys - frame.metrics.px(8));
  const auto query = frame.displayed.look.tokens.query();
  const float room = l.right - l.weight_sums;
  if (!query) {
    const std::string words = shortened(frame.fonts.sans13, "hover over a query, or click it", room);
    return title(l.weight_sums, "Its weights", words.c_str(), 0);
  }
  const std::string& token = frame.displayed.sequence().tokens[*query];
  const std::string name =
      shortened(frame.fonts.sans16, visible_token(token),
                std::max(frame.metrics.px(30), room - text_width(frame.fonts.sans16, "What  attends to")));
  title(l.weight_sums, ("What " + name + " attends to").c_str(),
        shortened(frame.fonts.sans13,
                  "sum of " + head_count(n_heads) + ", 0 to " + number_text(weight_sums.top), room)
            .c_str(),
        0);
}

/// Returns how many lines there are and how much of the weight they carry.
std::string count_words(const Frame& frame, const TokenLines& lines, bool scrolls) {
  if (lines.n_unmasked == 0) return "No head is displayed.";
  const std::size_t n = lines.lines.size(), n_above = lines.n_above;
  std::string words =
      n < n_above
          ? fmt::format("{} strongest of {} lines above the threshold", count_text(n), count_text(n_above))
          : fmt::format("{} of {} lines", count_text(n), count_text(lines.n_unmasked));
  words +=
      " (" + fixed(lines.total > 0 ? lines.line_weight / lines.total * 100 : 0, 1) + " % of the weight). ";
  words += frame.displayed.model.dropout.active() ? "Weights before dropout."
           : scrolls                              ? "Drawn for the queries in view."
                                                  : "Thickness is the weight.";
  return words;
}

/// Scrolls the pinned query into view after the keyboard has moved it.
void scroll_to_query(const Frame& frame, const TokenLayout& l, float height) {
  const TokensLook& look = frame.displayed.look.tokens;
  if (!look.scrolls_to_query) return;
  frame.commands.add(set<&TokensLook::scrolls_to_query>(false));
  if (!look.pinned_query) return;
  const float top = static_cast<float>(*look.pinned_query) * l.pitch, scroll = ImGui::GetScrollY();
  if (top < scroll) ImGui::SetScrollY(top);
  if (top + l.pitch > scroll + height) ImGui::SetScrollY(top + l.pitch - height);
}

void draw_rows(const Frame& frame, TokenLayout l, const TokenLines& lines, const WeightSums& weight_sums,
               const std::vector<std::size_t>& heads, float height) {
  const std::size_t n = n_rows(frame);
  const ImVec2 start = ImGui::GetCursorScreenPos();
  l.top = start.y + 2;
  const float scroll = ImGui::GetScrollY();
  const auto row_at = [&](float y) {
    return static_cast<std::size_t>(std::clamp(std::floor(y / l.pitch), 0.0f, static_cast<float>(n)));
  };
  l.first = row_at(scroll), l.end = std::min(n, row_at(scroll + height) + 1);
  scroll_to_query(frame, l, height);
  draw_token_lines(frame, l, lines, heads);
  draw_token_boxes(frame, l, heads);
  draw_weight_sums(frame, l, weight_sums, heads);
  reserve_room(start, {1, static_cast<float>(n) * l.pitch + 4});
}

}  // namespace

void draw_tokens(const Frame& frame) {
  const auto& m = frame.metrics;
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float width = room.x - ImGui::GetStyle().ScrollbarSize - m.px(4);
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  draw_token_chips(frame, width);
  const std::vector<std::size_t> heads = heads_with_lines(frame);
  const TokensLook& look = frame.displayed.look.tokens;
  const LineChoice choice{heads, look.hide_below, look.query(), max_drawn_lines};
  const TokenLines& lines =
      frame.work.statistics.lines(frame.displayed.trace, frame.displayed.version, choice);
  const WeightSums weight_sums = sum_weights(frame, heads);
  TokenLayout layout = columns(frame, origin.x, width);
  const float titles = ImGui::GetItemRectMax().y + m.px(8), top = titles + m.px(42), foot = m.px(26);
  const float height = std::max(m.px(40), origin.y + room.y - foot - top);
  draw_titles(frame, layout, {origin.x, titles}, weight_sums, heads.size());
  rows(frame, layout, height - 4);
  platform::move_to({origin.x, top});
  platform::begin_child("token rows", {std::max(1.0f, room.x), height});
  draw_rows(frame, layout, lines, weight_sums, heads, height);
  ImGui::EndChild();
  draw_text(
      frame.fonts.sans14, {origin.x, top + height + foot / 2 + m.px(2)}, Align::left_middle,
      frame.palette.dim,
      shortened(frame.fonts.sans14,
                count_words(frame, lines, static_cast<float>(n_rows(frame)) * layout.pitch > height), width));
}

}  // namespace app::panels
