#include "app/ui/panels/tokens/tokens_panel.hpp"

#include <algorithm>
#include <cmath>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/tokens/token_chips.hpp"
#include "app/ui/panels/tokens/token_rows.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/number_text.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

using widgets::Align;

constexpr std::size_t most_drawn_lines = 3000;
constexpr const char *keys_title = "Keys", *keys_words = "who is heard";

/// A title with its explanation on the same line.
float title_width(const Frame& frame, const char* title, const char* words) {
  return widgets::text_width(frame.fonts.sans16, title) + frame.metrics.px(10) +
         widgets::text_width(frame.fonts.sans13, words);
}

/// Queries stand at the left, keys at the right, from the same top.
std::size_t n_rows(const Frame& frame) {
  return std::max(frame.shown.model.n_tokens(), frame.shown.model.n_keys());
}

/// Columns that share the width; queries and keys as wide as their longest token and their title, within
/// reason.
TokenLayout columns(const Frame& frame, float left, float width) {
  const auto& m = frame.metrics;
  TokenLayout l;
  const float wide = std::max(m.px(86), std::min(m.px(130), width * 0.17f)),
              narrow = std::min(wide, std::max(m.px(86), title_width(frame, keys_title, keys_words)));
  float longest = 0;
  const core::attention::Sequence& sequence = frame.shown.model.sequences[frame.shown.look.sequence];
  for (const auto* tokens : {&sequence.tokens, &sequence.keys()})
    for (const std::string& token : *tokens)
      longest = std::max(longest, widgets::text_width(frame.fonts.sans15, token));
  const float digits = widgets::text_width(frame.fonts.mono12, std::to_string(n_rows(frame) - 1));
  l.query_width = l.key_width = std::round(std::clamp(longest + digits + m.px(26), narrow, wide));
  const float number = widgets::text_width(frame.fonts.mono13, "0.0000") + m.px(10);
  l.bar_width = std::round(std::clamp(width * 0.15f, m.px(60), m.px(150)));
  l.queries = left + 2;  // room for an outline
  l.lines = l.queries + l.query_width + m.px(6);
  l.right = left + width;
  l.takes = l.right - number - l.bar_width;
  l.keys = std::max(l.lines + m.px(40), l.takes - m.px(22) - l.key_width);
  return l;
}

/// The rows fill the height as long as they are readable; then they scroll.
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

void draw_titles(const Frame& frame, const TokenLayout& l, ImVec2 origin, const Takes& takes,
                 std::size_t n_heads) {
  const float middle = origin.y + frame.metrics.px(8), below = origin.y + frame.metrics.px(26);
  const auto title = [&](float x, const char* words, const char* explanation, float room) {
    widgets::draw_text(frame.fonts.sans16, {x, middle}, Align::left_middle, packed(frame.palette.text),
                       words);
    const float all = title_width(frame, words, explanation);
    const float beside = all - widgets::text_width(frame.fonts.sans13, explanation);
    widgets::draw_text(frame.fonts.sans13, all <= room ? ImVec2(x + beside, middle) : ImVec2(x, below),
                       Align::left_middle, packed(frame.palette.dim), explanation);
  };
  title(l.queries, "Queries", "who listens", l.keys - l.queries);
  title(l.keys, keys_title, keys_words, l.takes - l.keys - frame.metrics.px(8));
  const auto query = frame.shown.look.tokens.query();
  if (!query) return;
  const std::string& token = frame.shown.model.sequences[frame.shown.look.sequence].tokens[*query];
  const float room = l.right - l.takes;
  const std::string name = widgets::shortened(
      frame.fonts.sans16, token,
      std::max(frame.metrics.px(30), room - widgets::text_width(frame.fonts.sans16, "What  takes")));
  title(
      l.takes, ("What " + name + " takes").c_str(),
      widgets::shortened(frame.fonts.sans13,
                         "sum of " + head_count(n_heads) + ", 0 to " + widgets::number_text(takes.top), room)
          .c_str(),
      0);
}

/// What is drawn of what there is, in one honest line.
std::string count_words(const Frame& frame, const TokenLines& lines) {
  if (lines.visible == 0) return "No head is switched on.";
  std::string words =
      std::to_string(lines.lines.size()) + " of " + std::to_string(lines.visible) + " lines drawn";
  if (lines.above > lines.lines.size())
    words = "The strongest " + words + ", " + std::to_string(lines.above) + " are not hidden";
  words += "; they carry " + widgets::fixed(lines.total > 0 ? lines.carried / lines.total * 100 : 0, 1) +
           " % of the weight. ";
  words += frame.shown.model.dropout.active() ? "Weights before dropout." : "Thickness is the weight.";
  return words;
}

/// Puts the pinned query on the screen after the keyboard has moved it.
void come_into_view(const Frame& frame, const TokenLayout& l, float height) {
  const TokensLook& look = frame.shown.look.tokens;
  if (!look.comes_into_view) return;
  frame.commands.look([](View& v) { v.look.tokens.comes_into_view = false; });
  if (!look.pinned_query) return;
  const float top = static_cast<float>(*look.pinned_query) * l.pitch, scroll = ImGui::GetScrollY();
  if (top < scroll) ImGui::SetScrollY(top);
  if (top + l.pitch > scroll + height) ImGui::SetScrollY(top + l.pitch - height);
}

void draw_rows(const Frame& frame, TokenLayout l, const TokenLines& lines, const Takes& takes,
               const std::vector<std::size_t>& heads, float height) {
  const std::size_t n = n_rows(frame);
  const ImVec2 start = ImGui::GetCursorScreenPos();
  l.top = start.y + 2;
  const float scroll = ImGui::GetScrollY();
  const auto row_at = [&](float y) {
    return static_cast<std::size_t>(std::clamp(std::floor(y / l.pitch), 0.0f, static_cast<float>(n)));
  };
  l.first = row_at(scroll), l.end = std::min(n, row_at(scroll + height) + 1);
  come_into_view(frame, l, height);
  draw_token_lines(frame, l, lines, heads);
  draw_token_boxes(frame, l, heads);
  draw_takes(frame, l, takes, heads);
  platform::move_to(start);
  ImGui::Dummy({1, static_cast<float>(n) * l.pitch + 4});
}

}  // namespace

void draw_tokens(const Frame& frame) {
  const auto& m = frame.metrics;
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float width = room.x - ImGui::GetStyle().ScrollbarSize - m.px(4);
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  draw_token_chips(frame, width);
  const std::vector<std::size_t> heads = heads_with_lines(frame);
  const TokensLook& look = frame.shown.look.tokens;
  const LineChoice choice{heads, look.hide_below, look.query(), most_drawn_lines};
  const TokenLines& lines = frame.work.statistics.lines(frame.shown.trace, frame.shown.version, choice);
  const Takes takes = takes_of(frame, heads);
  TokenLayout layout = columns(frame, origin.x, width);
  const float titles = ImGui::GetItemRectMax().y + m.px(8), top = titles + m.px(42), foot = m.px(26);
  const float height = std::max(m.px(40), origin.y + room.y - foot - top);
  draw_titles(frame, layout, {origin.x, titles}, takes, heads.size());
  rows(frame, layout, height - 4);
  platform::move_to({origin.x, top});
  platform::begin_child("token rows", {std::max(1.0f, room.x), height});
  draw_rows(frame, layout, lines, takes, heads, height);
  ImGui::EndChild();
  widgets::draw_text(frame.fonts.sans14, {origin.x, top + height + foot / 2 + m.px(2)}, Align::left_middle,
                     packed(frame.palette.dim),
                     widgets::shortened(frame.fonts.sans14, count_words(frame, lines), width));
}

}  // namespace app::panels
