#include "app/ui/panels/stages/turning_panel.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/stages/turning_choice.hpp"
#include "app/ui/panels/stages/turning_circle.hpp"
#include "app/ui/panels/stages/turning_curve.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/number_text.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/editing/edit.hpp"
#include "core/graph/address.hpp"

namespace app::panels {
namespace {

using core::attention::Model;
using core::positions::RotaryDot;

constexpr float curve_width = 270;      // at scale 1
constexpr std::size_t few_pairs = 3;    // whose shares stand in the sum
constexpr std::size_t least_span = 24;  // of distances

double longest_arrow(const RotaryDot& now) {
  double longest = 0;
  for (const auto& pair : now.pairs)
    longest = std::max({longest, std::hypot(pair.query.x, pair.query.y), std::hypot(pair.key.x, pair.key.y)});
  return longest > 0 && std::isfinite(longest) ? longest : 1;
}

/// The numbers of an arrow that was let go are typed over those of the model.
void type_over(const Frame& frame, const TurningChoice& c, const MovedArrow& moved) {
  if (!frame.shows_newest()) return;  // what is pictured is of an older model
  const Stage stage = moved.of_key ? c.key_stage : c.query_stage;
  const auto columns = core::positions::columns_of(*c.rotary, moved.pair, c.query_row.n_elem);
  Model next = frame.newest.model;
  const auto type = [&](std::size_t column, double number) {
    const CellRef cell{stage, c.head, moved.of_key ? c.key : c.query, column};
    const auto place = core::explain::given_place(next, frame.shown.look.sequence, cell);
    next = core::editing::apply(next, core::editing::TypeOver{place, number});
  };
  type(columns.first, moved.numbers.x), type(columns.second, moved.numbers.y);
  frame.commands.edit(core::editing::ReplaceModel{std::move(next), "numbers typed over a pair"});
}

void draw_pairs(const Frame& frame, const TurningChoice& c, const RotaryDot& now, ImVec2 size) {
  const auto& m = frame.metrics;
  const auto& held = frame.shown.look.positions.held;
  TurningPair pair;
  pair.longest = held ? held->longest : longest_arrow(now);
  for (const auto& each : now.pairs) pair.most_share = std::max(pair.most_share, std::fabs(each.share));
  ImGui::SetNextWindowContentSize(
      {m.px(static_cast<float>(now.pairs.size()) * (pair_width + pair_gap) - pair_gap), pair_height(frame)});
  platform::begin_child("pairs", size, false,
                        ImGuiWindowFlags_HorizontalScrollbar | ImGuiWindowFlags_NoNavInputs);
  const ImVec2 origin = ImGui::GetCursorScreenPos(), min = ImGui::GetWindowPos();
  std::optional<MovedArrow> moved;
  for (std::size_t k = 0; k < now.pairs.size(); ++k) {
    const ImVec2 at{origin.x + m.px(static_cast<float>(k) * (pair_width + pair_gap)), origin.y};
    pair.index = k, pair.now = now.pairs[k];
    pair.is_held = held && held->pair == k;
    const bool is_seen = at.x < min.x + size.x && at.x + m.px(pair_width) > min.x;
    if (!is_seen && !pair.is_held) continue;
    if (const auto arrow = draw_turning_circle(frame, pair, at)) moved = arrow;
  }
  ImGui::EndChild();
  if (!moved) return;
  if (!moved->is_held) type_over(frame, c, *moved);
  frame.commands.look([arrow = *moved, longest = pair.longest](View& v) {
    v.look.positions.held.reset();
    if (arrow.is_held)
      v.look.positions.held = HeldArrow{arrow.of_key, arrow.pair, arrow.numbers.x, arrow.numbers.y, longest};
  });
}

void slider(const Frame& frame, const char* words, const char* name, std::int64_t now, std::int64_t first,
            std::int64_t last, std::optional<std::int64_t> PositionsLook::*place, float width) {
  const auto& m = frame.metrics;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  widgets::draw_text(frame.fonts.sans14, {at.x, widgets::centred_y(frame.fonts.sans14, at.y, m.frame)},
                     frame.palette.dim, words);
  platform::move_to({at.x + m.px(64), at.y});
  ImGui::SetNextItemWidth(width - m.px(64));
  std::int64_t value = now;
  platform::push_font(frame.fonts.mono14);
  const bool moved = ImGui::SliderScalar((std::string("##") + name).c_str(), ImGuiDataType_S64, &value,
                                         &first, &last, nullptr, ImGuiSliderFlags_AlwaysClamp);
  ImGui::PopFont();
  frame.landmarks.mark_item(name);
  if (moved) frame.commands.look([place, value](View& v) { v.look.positions.*place = value; });
  platform::move_to({at.x, at.y + m.frame + m.px(4)});
}

void draw_distances(const Frame& frame, const TurningChoice& c, ImVec2 at) {
  const auto& m = frame.metrics;
  const float width = m.px(curve_width), plot = pair_height(frame) - m.px(24 + 8 + 28 + 28 + 16);
  widgets::draw_text(frame.fonts.sans14, at, frame.palette.text, "score against distance");
  const auto span = static_cast<std::int64_t>(std::max({least_span, c.n_queries, c.n_keys}));
  const auto to = draw_turning_curve(frame, {at.x, at.y + m.px(24)}, {width, plot}, static_cast<double>(span),
                                     static_cast<double>(c.query_at - c.key_at), [&](double d) {
                                       const auto key_at = static_cast<double>(c.key_at);
                                       return c.meet(key_at + d, key_at).score;
                                     });
  if (to)
    frame.commands.look(
        [place = c.key_at + static_cast<std::int64_t>(*to)](View& v) { v.look.positions.query_at = place; });
  platform::move_to({at.x, at.y + m.px(24 + 8) + plot});
  // From where the tokens stand a span on, and as far as one of both was moved.
  const std::int64_t first = std::min({c.rotary->first, c.query_at, c.key_at}),
                     last = std::max({c.rotary->first + span, c.query_at, c.key_at});
  slider(frame, "query at", "positions/query_at", c.query_at, first, last, &PositionsLook::query_at, width);
  slider(frame, "key at", "positions/key_at", c.key_at, first, last, &PositionsLook::key_at, width);
  const ImVec2 below = ImGui::GetCursorScreenPos();
  widgets::draw_text(frame.fonts.sans14, below, frame.palette.dim, "distance, query − key");
  widgets::draw_text_right(frame.fonts.mono14, below.x + width, below.y, frame.palette.text,
                           std::to_string(c.query_at - c.key_at));
}

/// "0.0138 + 0.2614 − 0.3446 = −0.0694"; of many pairs the sum alone.
std::string sum_words(const RotaryDot& now) {
  std::string words;
  for (const auto& pair : now.pairs) {
    if (now.pairs.size() > few_pairs) break;
    if (words.empty())
      words = widgets::fixed(pair.share, 4);
    else
      words += (pair.share < 0 ? " − " : " + ") + widgets::fixed(std::fabs(pair.share), 4);
  }
  if (now.pairs.size() > few_pairs) words = "sum of " + std::to_string(now.pairs.size()) + " pairs";
  if (now.unrotated != 0)
    words += (now.unrotated < 0 ? " − " : " + ") + widgets::fixed(std::fabs(now.unrotated), 4) +
             " of columns that stay";
  return words + " = " + widgets::fixed(now.score, 4);
}

void draw_sum(const Frame& frame, const TurningChoice& c, const RotaryDot& now, ImVec2 at, float width) {
  const auto& sequence = frame.shown.model.sequences[frame.shown.look.sequence];
  const std::string of =
      "score of " + sequence.tokens[c.query] + " and " + sequence.keys()[c.key] + ", before scaling";
  const float words = widgets::text_width(frame.fonts.sans14, of);
  widgets::draw_text_within(frame.fonts.mono14, at, width - words - frame.metrics.px(16), frame.palette.text,
                            sum_words(now));
  widgets::draw_text_right(frame.fonts.sans14, at.x + width, at.y, frame.palette.dim, of);
  frame.landmarks.mark("positions/sum", at, {at.x + width, at.y + frame.metrics.px(18)});
}

}  // namespace

bool has_turning(const Frame& frame, Stage stage) {
  return (stage == Stage::rotated_queries || stage == Stage::rotated_keys) &&
         frame.shown.model.additions.positions.rotary && frame.shown.model.d_head() > 1;
}

float turning_height(const Frame& frame) {
  return frame.metrics.frame + pair_height(frame) + frame.metrics.px(10 + 10 + 8 + 22);
}

void draw_turning(const Frame& frame, ImVec2 at, float width) {
  const auto& m = frame.metrics;
  const TurningChoice c = turning_choice(frame);
  const RotaryDot now = c.meet(static_cast<double>(c.query_at), static_cast<double>(c.key_at));
  draw_turning_choice(frame, c, at, width);
  const ImVec2 top{at.x, at.y + m.frame + m.px(10)};
  if (!std::isfinite(now.score)) {
    platform::move_to(top);
    widgets::paragraph(frame.fonts.sans14, frame.palette.dim, width,
                       "This query or this key is not made of finite numbers.");
    return;
  }
  const float all = m.px(static_cast<float>(now.pairs.size()) * (pair_width + pair_gap) - pair_gap);
  const float pairs = std::min(all, width - m.px(curve_width + pair_gap));
  platform::move_to(top);
  draw_pairs(frame, c, now, {pairs, pair_height(frame) + (all > pairs ? m.px(10) : 0)});
  draw_distances(frame, c, {top.x + pairs + m.px(pair_gap), top.y});
  draw_sum(frame, c, now, {top.x, top.y + pair_height(frame) + m.px(18)},
           pairs + m.px(pair_gap + curve_width));
}

}  // namespace app::panels
