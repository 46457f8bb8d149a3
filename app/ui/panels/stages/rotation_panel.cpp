#include "app/ui/panels/stages/stages_panel.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "core/base/positions.hpp"
#include "core/editing/edit.hpp"
#include "core/graph/address.hpp"
#include "core/graph/injected_bugs.hpp"

namespace app::panels {

namespace {

/// A pair of columns of the displayed query and key.
struct DisplayedPair {
  std::size_t index = 0;
  core::positions::RotaryPair now;
  double rim_length = 1;  ///< length of an arrow that reaches the rim
  double max_share = 1;   ///< maximum of the bars of all pairs
  bool is_held = false;   ///< one of its arrows is being dragged
};

// At scale 1: the width of a pair, and the gap between two.
constexpr float pair_width = 182, pair_gap = 24;

/// A dragged arrow: the two numbers of its pair before the rotation.
struct MovedArrow {
  bool of_key = false;
  std::size_t pair = 0;
  core::positions::Arrow numbers;
  bool is_held = true;  ///< until it is released
};

/// The chosen query and key of a head before the rotation, and their positions.
struct QueryKeyChoice {
  core::positions::Rotary rotary;
  std::size_t head = 0, query = 0, key = 0, n_queries = 0, n_keys = 0;
  Stage query_stage = Stage::queries, key_stage = Stage::keys;
  arma::rowvec query_row, key_row;  ///< with the numbers of a dragged arrow
  std::int64_t query_at = 0, key_at = 0;
  core::positions::RotaryDot dot_at(double query_place, double key_place) const {
    return core::positions::rotary_dot(rotary, query_row, key_row, query_place, key_place);
  }
};

/// Plot of scores (up) against distances (across).
struct Plot {
  ImVec2 min, max;
  double max_distance, low, high;
  ImVec2 at(double distance, double score) const {
    const double x = distance / max_distance, y = (score - low) / (high - low);
    return {min.x + (max.x - min.x) * static_cast<float>(x), max.y - (max.y - min.y) * static_cast<float>(y)};
  }
};

void draw_plot_frame(const Frame& frame, const Plot& plot) {
  draw_rect(plot.min, plot.max, frame.palette.background.back);
  for (const double score : {plot.low, 0.0, plot.high}) {
    const float y = std::round(plot.at(0, score).y);
    draw_rect({plot.min.x, y}, {plot.max.x, y + 1}, frame.palette.line);
    draw_text(frame.fonts.mono12, {plot.min.x - frame.metrics.px(6), y}, Align::right_middle,
              frame.palette.dim, score == 0 ? "0" : fixed(score, 2));
  }
  for (int quarter = 0; quarter <= 4; ++quarter) {
    const double distance = plot.max_distance * quarter / 4;
    draw_text(frame.fonts.mono12, {plot.at(distance, 0).x, plot.max.y + frame.metrics.px(11)}, Align::middle,
              frame.palette.dim, fixed(distance, distance == std::floor(distance) ? 0 : 1));
  }
}

/// Draws a score at every distance of query and key from 0 to `max_distance`, with dots at whole distances
/// and the current distance marked; returns the distance at which the mouse is pressed.
std::optional<double> draw_score_curve(const Frame& frame, ImVec2 at, ImVec2 size, double max_distance,
                                       double distance, const std::function<double(double)>& score) {
  constexpr double steps_per_unit = 8, max_steps = 2048;
  std::vector<double> scores;
  const int steps = static_cast<int>(std::min(max_distance * steps_per_unit, max_steps));
  double low = 0, high = 0;
  for (int k = 0; k <= steps; ++k) {
    scores.push_back(score(max_distance * k / steps));
    if (!std::isfinite(scores.back())) return std::nullopt;
    low = std::min(low, scores.back()), high = std::max(high, scores.back());
  }
  if (low == high) high = 1;
  const float left = frame.metrics.px(52);
  const Plot plot{
      {at.x + left, at.y}, {at.x + size.x, at.y + size.y - frame.metrics.px(20)}, max_distance, low, high};
  draw_plot_frame(frame, plot);
  ImDrawList* list = ImGui::GetWindowDrawList();
  std::vector<ImVec2> points;
  for (int k = 0; k <= steps; ++k)
    points.push_back(plot.at(max_distance * k / steps, scores[static_cast<std::size_t>(k)]));
  list->AddPolyline(points.data(), static_cast<int>(points.size()), packed(frame.palette.dim), 0, 1.5f);
  if (max_distance <= 64)
    for (double d = 0; d <= max_distance; ++d)
      list->AddCircleFilled(plot.at(d, score(d)), frame.metrics.px(2), packed(frame.palette.text));
  if (distance >= 0 && distance <= max_distance) {
    const ImVec2 now = plot.at(distance, score(distance));
    draw_rect({std::round(now.x), plot.min.y}, {std::round(now.x) + 1, plot.max.y}, frame.palette.selection);
    list->AddCircleFilled(now, frame.metrics.px(5), packed(frame.palette.selection));
  }
  platform::move_to(plot.min);
  hit_area("positions/curve", {plot.max.x - plot.min.x, plot.max.y - plot.min.y});
  frame.landmarks.mark_item("positions/curve");
  if (!ImGui::IsItemActive()) return std::nullopt;
  const double share = (ImGui::GetMousePos().x - plot.min.x) / (plot.max.x - plot.min.x);
  return std::round(std::clamp(share, 0.0, 1.0) * max_distance);
}

using core::positions::Arrow;

constexpr float tip_radius = 9;  // at scale 1
constexpr double degrees = 180 / std::numbers::pi;

double length_of(Arrow a) {
  return std::hypot(a.x, a.y);
}

/// Screen layout of the arrows of one pair; y is up.
struct Dial {
  ImVec2 middle;
  float radius;
  double rim_length;
  ImVec2 point(Arrow a) const {
    const double scale = radius / rim_length;
    return {middle.x + static_cast<float>(a.x * scale), middle.y - static_cast<float>(a.y * scale)};
  }
  Arrow arrow(ImVec2 p) const {
    const double scale = rim_length / radius;
    return {static_cast<double>(p.x - middle.x) * scale, static_cast<double>(middle.y - p.y) * scale};
  }
  ImVec2 on(double angle, float r) const {
    return {middle.x + r * static_cast<float>(std::cos(angle)),
            middle.y - r * static_cast<float>(std::sin(angle))};
  }
};

double angle_of(Arrow a) {
  return std::atan2(a.y, a.x);
}

/// Draws an arc between two angles, in radians; more than a full rotation is a whole circle.
void arc(const Dial& dial, double from, double to, float r, ImU32 color, float thickness) {
  constexpr double whole = 2 * std::numbers::pi;
  const double by = std::clamp(to - from, -whole, whole);
  const int steps = std::max(2, static_cast<int>(std::fabs(by) * 16));
  std::vector<ImVec2> points;
  for (int k = 0; k <= steps; ++k) points.push_back(dial.on(from + by * k / steps, r));
  ImGui::GetWindowDrawList()->AddPolyline(points.data(), static_cast<int>(points.size()), color, 0,
                                          thickness);
}

void draw_arrow_head(ImVec2 tip, double angle, float size, ImU32 color) {
  const auto corner = [&](double by) {
    return ImVec2(tip.x - size * static_cast<float>(std::cos(angle + by)),
                  tip.y + size * static_cast<float>(std::sin(angle + by)));
  };
  ImGui::GetWindowDrawList()->AddTriangleFilled(tip, corner(0.42), corner(-0.42), color);
}

/// Draws an arrow from the center, and its rotation as an arc on the rim: a dot before, a head after.
void draw_rotated_arrow(const Frame& frame, const Dial& dial, Arrow before, Arrow after, double rotation,
                        float radial_offset, Rgb color) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImU32 ink = packed(color);
  const float r = dial.radius + frame.metrics.px(radial_offset);
  if (length_of(before) > 0) {
    const double from = angle_of(before), to = from + rotation;
    arc(dial, from, to, r, packed(color, 0.7f), 1.5f);
    list->AddCircleFilled(dial.on(from, r), frame.metrics.px(2.5f), ink);
    if (rotation != 0)
      draw_arrow_head(dial.on(to, r), to + (rotation < 0 ? -1 : 1) * std::numbers::pi / 2,
                      frame.metrics.px(6), ink);
  }
  const ImVec2 tip = dial.point(after);
  list->AddLine(dial.middle, tip, ink, frame.metrics.px(2));
  if (length_of(after) > 0) draw_arrow_head(tip, angle_of(after), frame.metrics.px(9), ink);
}

/// Returns the position of an angle's label: inside the angle or, if that is too narrow, next to the query;
/// within the rim.
ImVec2 angle_label_position(const Frame& frame, const Dial& dial, double key, double by, float radial_offset,
                            ImVec2 half) {
  const auto across = [&](double angle) {
    return half.x * std::fabs(std::sin(angle)) + half.y * std::fabs(std::cos(angle));
  };
  const auto distance = [&](double angle) {
    const double along = half.x * std::fabs(std::cos(angle)) + half.y * std::fabs(std::sin(angle));
    return std::min<double>(radial_offset + frame.metrics.px(20), dial.radius - along - frame.metrics.px(3));
  };
  double angle = key + by / 2;
  if (std::fabs(by) < 1) {
    const double query = key + by, free = across(query) + frame.metrics.px(5);
    angle = query + (by < 0 ? -1 : 1) * std::asin(std::min(0.95, free / distance(query)));
  }
  return dial.on(angle, static_cast<float>(distance(angle)));
}

/// Draws the smaller angle between the two, with its size in degrees.
void draw_angle(const Frame& frame, const Dial& dial, Arrow query, Arrow key) {
  if (length_of(query) == 0 || length_of(key) == 0) return;
  const double from = angle_of(key);
  const double by = std::remainder(angle_of(query) - from, 2 * std::numbers::pi);
  const bool small = frame.metrics.compact;
  const float r = frame.metrics.px(small ? 16 : 26);
  arc(dial, from, from + by, r, packed(frame.palette.text), 1.5f);
  const double size = std::fabs(by) * degrees;
  const std::string words = fixed(size, small && size >= 57 ? 0 : 1) + "°";
  const ImVec2 half{text_width(frame.fonts.mono12, words) / 2 + 2, frame.metrics.px(7)};
  const ImVec2 at = angle_label_position(frame, dial, from, by, r, half);
  draw_rect({at.x - half.x, at.y - half.y}, {at.x + half.x, at.y + half.y},
            packed(frame.palette.background.back, 0.85f));
  draw_text(frame.fonts.mono12, at, Align::middle, frame.palette.text, words);
}

/// Adds the tip of an arrow as an item; a drag gives the numbers before the rotation that lead to the mouse.
std::optional<MovedArrow> drag_tip(const Frame& frame, const Dial& dial, const DisplayedPair& pair,
                                   bool of_key) {
  const Arrow after = of_key ? pair.now.rotated_key : pair.now.rotated_query;
  const double rotation = of_key ? pair.now.key_angle : pair.now.query_angle;
  const std::string name =
      std::string(of_key ? "positions/key_tip/" : "positions/query_tip/") + std::to_string(pair.index);
  const float room = frame.metrics.px(tip_radius);
  const ImVec2 tip = dial.point(after);
  platform::move_to({tip.x - room, tip.y - room});
  hit_area(name.c_str(), {2 * room, 2 * room});
  frame.landmarks.mark_item(name);
  if (ImGui::IsItemHovered() || ImGui::IsItemActive()) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    ImGui::GetWindowDrawList()->AddCircle(tip, room, packed(frame.palette.accent), 0, 2);
  }
  const bool is_released = ImGui::IsItemDeactivated();
  if (!is_released && !(ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Left, 2)))
    return std::nullopt;
  if (is_released && !pair.is_held) return std::nullopt;  // a click
  Arrow before = core::positions::rotate(dial.arrow(ImGui::GetMousePos()), -rotation);
  before.x /= pair.now.attention_factor, before.y /= pair.now.attention_factor;
  return MovedArrow{of_key, pair.index, before, !is_released};
}

/// Returns the radius of the circles, in pixels.
float dial_radius(const Frame& frame) {
  return frame.metrics.px(frame.metrics.compact ? 44 : 60);
}

void draw_rotation_line(const Frame& frame, ImVec2 at, const char* words, double angle, Rgb color) {
  draw_text(frame.fonts.sans13, at, Align::left_middle, frame.palette.dim, words);
  draw_text(frame.fonts.mono12, {at.x + frame.metrics.px(pair_width), at.y}, Align::right_middle, color,
            fixed(angle * degrees, 2) + "°");
}

/// Draws the share as a bar with zero in the middle, and as a number.
void draw_pair_share(const Frame& frame, const DisplayedPair& pair, ImVec2 at) {
  draw_text(frame.fonts.sans13, at, Align::left_middle, frame.palette.dim, "share");
  const float left = at.x + frame.metrics.px(42), width = frame.metrics.px(72), zero = left + width / 2;
  const float top = at.y - frame.metrics.px(5), bottom = at.y + frame.metrics.px(5);
  draw_rect({left, top}, {left + width, bottom}, frame.palette.control.rest);
  const double part = pair.max_share > 0 ? pair.now.share / pair.max_share : 0;
  const float length = std::max(2.0f, static_cast<float>(std::fabs(part)) * width / 2);
  const Rgb color =
      render::color_at(render::ColorMap::values, frame.palette.dark, 0.5 + (part < 0 ? -0.35 : 0.35));
  draw_rect({part < 0 ? zero - length : zero, top}, {part < 0 ? zero : zero + length, bottom}, color);
  draw_text(frame.fonts.mono13, {at.x + frame.metrics.px(pair_width), at.y}, Align::right_middle,
            frame.palette.text, fixed(pair.now.share, 4));
}

/// Returns the height of a pair, in pixels.
float pair_height(const Frame& frame) {
  return 2 * dial_radius(frame) + frame.metrics.px(138);
}

/// Draws a pair as two arrows in a circle, white for the query and pink for the key, with rotation arcs, the
/// angle between them and the share in the score; returns an arrow that is dragged or just released.
std::optional<MovedArrow> draw_rotary_pair(const Frame& frame, const DisplayedPair& pair, ImVec2 at) {
  const auto& m = frame.metrics;
  const auto& p = frame.palette;
  const auto& now = pair.now;
  const std::string name = "pair " + std::to_string(pair.index);
  draw_text(frame.fonts.sans14, {at.x, at.y + m.px(9)}, Align::left_middle, p.text, name);
  draw_text(frame.fonts.sans12, {at.x + text_width(frame.fonts.sans14, name) + m.px(10), at.y + m.px(9)},
            Align::left_middle, p.faint,
            fmt::format("columns {}, {}", now.columns.first, now.columns.second));
  const Dial dial{{std::round(at.x + m.px(pair_width / 2)), std::round(at.y + m.px(36) + dial_radius(frame))},
                  dial_radius(frame),
                  pair.rim_length};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddCircleFilled(dial.middle, dial.radius, packed(p.background.back), 64);
  list->AddCircle(dial.middle, dial.radius, packed(p.strong_line), 64);
  list->AddLine({dial.middle.x - dial.radius, dial.middle.y}, {dial.middle.x + dial.radius, dial.middle.y},
                packed(p.line));
  list->AddLine({dial.middle.x, dial.middle.y - dial.radius}, {dial.middle.x, dial.middle.y + dial.radius},
                packed(p.line));
  draw_rotated_arrow(frame, dial, now.key, now.rotated_key, now.key_angle, 9, p.operand);
  draw_rotated_arrow(frame, dial, now.query, now.rotated_query, now.query_angle, 5, p.selection);
  draw_angle(frame, dial, now.rotated_query, now.rotated_key);
  const auto query = drag_tip(frame, dial, pair, false), key = drag_tip(frame, dial, pair, true);
  frame.landmarks.mark("positions/circle/" + std::to_string(pair.index),
                       {dial.middle.x - dial.radius, dial.middle.y - dial.radius},
                       {dial.middle.x + dial.radius, dial.middle.y + dial.radius});
  const float lines = at.y + 2 * dial_radius(frame) + m.px(70);
  draw_rotation_line(frame, {at.x, lines}, "query rotated", now.query_angle, p.text);
  draw_rotation_line(frame, {at.x, lines + m.px(19)}, "key rotated", now.key_angle, p.operand);
  draw_pair_share(frame, pair, {at.x, lines + m.px(42)});
  return query ? query : key;
}

using core::attention::Model;

/// Takes query and key from the pinned cell if it has them; the default is the last query and the first key.
void choose_pinned(const Frame& frame, QueryKeyChoice& c) {
  c.query = c.n_queries - 1;
  const auto& pinned = frame.displayed.selection.pinned;
  if (!pinned) return;
  const auto& stage = core::attention::info(pinned->stage);
  if (stage.rows == core::attention::RowTokens::queries) c.query = std::min(pinned->row, c.n_queries - 1);
  if (stage.rows == core::attention::RowTokens::keys) c.key = std::min(pinned->row, c.n_keys - 1);
  if (stage.columns == core::attention::Columns::tokens) c.key = std::min(pinned->column, c.n_keys - 1);
}

/// Moves query and key back to the positions of their tokens.
void reset_positions(const Frame& frame) {
  frame.commands.add(set<&PositionsLook::query_at>(std::nullopt), set<&PositionsLook::key_at>(std::nullopt),
                     set<&PositionsLook::dragged_arrow>(std::nullopt));
}

void pin(const Frame& frame, const QueryKeyChoice& c, std::size_t query, std::size_t key) {
  frame.commands.add(set<&Selection::pinned>(CellRef{Stage::scores, c.head, query, key}),
                     set<&Selection::trail>({}));
  reset_positions(frame);
}

/// Draws a field for the index of a token, followed by its name; returns an index that was entered.
std::optional<std::size_t> token_field(const Frame& frame, const char* words, std::size_t now,
                                       const std::vector<std::string>& names, Rgb color) {
  const auto& m = frame.metrics;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImFont* font = frame.fonts.sans15;
  const float y = centered_y(font, at.y, m.frame);
  draw_text(font, {at.x, y}, frame.palette.dim, words);
  platform::move_to({at.x + m.px(48), at.y});
  const auto step = [&](std::uint64_t v, int by) {
    return by > 0 ? std::min<std::uint64_t>(v + 1, names.size() - 1) : v > 0 ? v - 1 : 0;
  };
  const auto typed = count_field(frame, std::string("positions/") + words, words, now, m.px(44), step);
  draw_text_within(font, {at.x + m.px(98), y}, m.px(64), color, names[now]);
  platform::move_to({at.x + m.px(170), at.y});
  if (!typed || *typed < names.size()) return typed;
  frame.commands.add(ShowMessage{
      fmt::format("{}: expected a number below {}, found \"{}\"", words, names.size(), *typed), true});
  return std::nullopt;
}

/// Returns the query and the key of the pinned cell, else the last query and the first key.
QueryKeyChoice query_key_choice(const Frame& frame) {
  const Model& model = frame.displayed.model;
  const PositionsLook& look = frame.displayed.look.positions;
  QueryKeyChoice c;
  c.rotary = *rotary_of(model);
  c.head = frame.displayed.look.head, c.n_queries = model.n_tokens(), c.n_keys = model.n_keys();
  choose_pinned(frame, c);
  c.query_stage = core::attention::input_stage(frame.displayed.graph, Stage::rotated_queries);
  c.key_stage = core::attention::input_stage(frame.displayed.graph, Stage::rotated_keys);
  c.query_row = frame.displayed.trace.at(c.query_stage, c.head).row(c.query);
  c.key_row = frame.displayed.trace.at(c.key_stage, c.head).row(c.key);
  const auto& dragged_arrow = look.dragged_arrow;
  if (dragged_arrow &&
      dragged_arrow->pair < core::positions::rotated_columns(c.rotary, c.query_row.n_elem) / 2) {
    arma::rowvec& numbers = dragged_arrow->of_key ? c.key_row : c.query_row;
    const auto [a, b] = core::positions::pair_columns(c.rotary, dragged_arrow->pair, numbers.n_elem);
    numbers(a) = dragged_arrow->x, numbers(b) = dragged_arrow->y;
  }
  c.query_at = look.query_at.value_or(core::attention::position_of_query(model, c.query));
  c.key_at = look.key_at.value_or(core::attention::position_of_key(model, c.key));
  return c;
}

/// Draws a line to choose query and key, and to reset them to the positions of their tokens.
void draw_query_key_choice(const Frame& frame, const QueryKeyChoice& c, ImVec2 at, float width) {
  const auto& m = frame.metrics;
  const auto& sequence = frame.displayed.sequence();
  platform::move_to(at);
  if (const auto query = token_field(frame, "query", c.query, sequence.tokens, frame.palette.selection))
    pin(frame, c, *query, c.key);
  if (const auto key = token_field(frame, "key", c.key, sequence.keys(), frame.palette.operand))
    pin(frame, c, c.query, *key);
  if (button(frame, "positions/reset", "as placed", "Query and key at the positions of their tokens"))
    reset_positions(frame);
  const float x = ImGui::GetItemRectMax().x + m.px(12);
  const bool is_wrong = core::bugs::has_bugs(frame.displayed.model);
  const std::string shared = head_words(frame.displayed.model, Stage::keys, c.head);
  const std::string words = is_wrong ? "the model has a bug; this view rotates pairs as they should be"
                                     : "drag a tip to override its numbers · keys of " + shared;
  draw_text_within(frame.fonts.sans14, {x, centered_y(frame.fonts.sans14, at.y, m.frame)}, at.x + width - x,
                   is_wrong ? frame.palette.status.warning : frame.palette.faint, words);
}

using core::positions::RotaryDot;

constexpr float curve_width = 270;           // at scale 1
constexpr std::size_t max_listed_pairs = 3;  // the sum lists up to as many shares
constexpr std::size_t min_span = 24;         // of distances

double max_arrow_length(const RotaryDot& now) {
  double rim_length = 0;
  for (const auto& pair : now.pairs)
    rim_length =
        std::max({rim_length, std::hypot(pair.query.x, pair.query.y) * std::max(1.0, pair.attention_factor),
                  std::hypot(pair.key.x, pair.key.y) * std::max(1.0, pair.attention_factor)});
  return rim_length > 0 && std::isfinite(rim_length) ? rim_length : 1;
}

/// Overrides the model's numbers with those of a released arrow.
void override_pair(const Frame& frame, const QueryKeyChoice& c, const MovedArrow& moved) {
  if (!frame.is_up_to_date()) return;  // the picture is of an older model
  const Stage stage = moved.of_key ? c.key_stage : c.query_stage;
  const auto columns = core::positions::pair_columns(c.rotary, moved.pair, c.query_row.n_elem);
  Model next = frame.pending.model;
  const auto override_number = [&](std::size_t column, double number) {
    const CellRef cell{stage, c.head, moved.of_key ? c.key : c.query, column};
    const auto place = core::explain::given_cell_address(next, frame.displayed.look.sequence, cell);
    next = core::editing::apply(next, core::editing::OverrideValue{place, number});
  };
  override_number(columns.first, moved.numbers.x), override_number(columns.second, moved.numbers.y);
  frame.commands.edit(core::editing::ReplaceModel{std::move(next), "override a rotary pair"});
}

void draw_pairs(const Frame& frame, const QueryKeyChoice& c, const RotaryDot& now, ImVec2 size) {
  const auto& m = frame.metrics;
  const auto& dragged_arrow = frame.displayed.look.positions.dragged_arrow;
  DisplayedPair pair;
  pair.rim_length = dragged_arrow ? dragged_arrow->rim_length : max_arrow_length(now);
  for (const auto& each : now.pairs) pair.max_share = std::max(pair.max_share, std::fabs(each.share));
  ImGui::SetNextWindowContentSize(
      {m.px(static_cast<float>(now.pairs.size()) * (pair_width + pair_gap) - pair_gap), pair_height(frame)});
  platform::begin_child("pairs", size, false,
                        ImGuiWindowFlags_HorizontalScrollbar | ImGuiWindowFlags_NoNavInputs);
  const ImVec2 origin = ImGui::GetCursorScreenPos(), min = ImGui::GetWindowPos();
  std::optional<MovedArrow> moved;
  for (std::size_t k = 0; k < now.pairs.size(); ++k) {
    const ImVec2 at{origin.x + m.px(static_cast<float>(k) * (pair_width + pair_gap)), origin.y};
    pair.index = k, pair.now = now.pairs[k];
    pair.is_held = dragged_arrow && dragged_arrow->pair == k;
    const bool is_seen = at.x < min.x + size.x && at.x + m.px(pair_width) > min.x;
    if (!is_seen && !pair.is_held) continue;
    if (const auto arrow = draw_rotary_pair(frame, pair, at)) moved = arrow;
  }
  ImGui::EndChild();
  if (!moved) return;
  if (!moved->is_held) override_pair(frame, c, *moved);
  std::optional<DraggedArrow> arrow;
  if (moved->is_held)
    arrow = DraggedArrow{moved->of_key, moved->pair, moved->numbers.x, moved->numbers.y, pair.rim_length};
  frame.commands.add(set<&PositionsLook::dragged_arrow>(arrow));
}

void slider(const Frame& frame, const char* words, const char* name, std::int64_t now, std::int64_t first,
            std::int64_t last, std::optional<std::int64_t> PositionsLook::*place, float width) {
  const auto& m = frame.metrics;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_text(frame.fonts.sans14, {at.x, centered_y(frame.fonts.sans14, at.y, m.frame)}, frame.palette.dim,
            words);
  platform::move_to({at.x + m.px(64), at.y});
  ImGui::SetNextItemWidth(width - m.px(64));
  std::int64_t value = now;
  platform::push_font(frame.fonts.mono14);
  const bool moved = ImGui::SliderScalar((std::string("##") + name).c_str(), ImGuiDataType_S64, &value,
                                         &first, &last, nullptr, ImGuiSliderFlags_AlwaysClamp);
  ImGui::PopFont();
  frame.landmarks.mark_item(name);
  if (moved)
    frame.commands.add(place == &PositionsLook::query_at ? set<&PositionsLook::query_at>(value)
                                                         : set<&PositionsLook::key_at>(value));
  platform::move_to({at.x, at.y + m.frame + m.px(4)});
}

void draw_distances(const Frame& frame, const QueryKeyChoice& c, ImVec2 at) {
  const auto& m = frame.metrics;
  const float width = m.px(curve_width), plot = pair_height(frame) - m.px(24 + 8 + 28 + 28 + 16);
  draw_text(frame.fonts.sans14, at, frame.palette.text, "score against distance");
  const auto span = static_cast<std::int64_t>(std::max({min_span, c.n_queries, c.n_keys}));
  const auto to = draw_score_curve(frame, {at.x, at.y + m.px(24)}, {width, plot}, static_cast<double>(span),
                                   static_cast<double>(c.query_at - c.key_at), [&](double d) {
                                     const auto key_at = static_cast<double>(c.key_at);
                                     return c.dot_at(key_at + d, key_at).score;
                                   });
  if (to) frame.commands.add(set<&PositionsLook::query_at>(c.key_at + static_cast<std::int64_t>(*to)));
  platform::move_to({at.x, at.y + m.px(24 + 8) + plot});
  // From the first key over a span, extended to positions that query or key were moved to.
  const std::int64_t first = std::min({c.rotary.first, c.query_at, c.key_at}),
                     last = std::max({c.rotary.first + span, c.query_at, c.key_at});
  slider(frame, "query at", "positions/query_at", c.query_at, first, last, &PositionsLook::query_at, width);
  slider(frame, "key at", "positions/key_at", c.key_at, first, last, &PositionsLook::key_at, width);
  const ImVec2 below = ImGui::GetCursorScreenPos();
  draw_text(frame.fonts.sans14, below, frame.palette.dim, "distance, query − key");
  draw_text_right(frame.fonts.mono14, below.x + width, below.y, frame.palette.text,
                  std::to_string(c.query_at - c.key_at));
}

/// Returns "0.0138 + 0.2614 − 0.3446 = −0.0694"; for many pairs the sum alone.
std::string sum_words(const RotaryDot& now) {
  std::string words;
  for (const auto& pair : now.pairs) {
    if (now.pairs.size() > max_listed_pairs) break;
    if (words.empty())
      words = fixed(pair.share, 4);
    else
      words += (pair.share < 0 ? " − " : " + ") + fixed(std::fabs(pair.share), 4);
  }
  if (now.pairs.size() > max_listed_pairs) words = fmt::format("sum of {} pairs", now.pairs.size());
  if (now.unrotated != 0)
    words += (now.unrotated < 0 ? " − " : " + ") + fixed(std::fabs(now.unrotated), 4) +
             " of columns that are not rotated";
  return words + " = " + fixed(now.score, 4);
}

void draw_sum(const Frame& frame, const QueryKeyChoice& c, const RotaryDot& now, ImVec2 at, float width) {
  const auto& sequence = frame.displayed.sequence();
  const std::string of =
      "score of " + sequence.tokens[c.query] + " and " + sequence.keys()[c.key] + ", before scaling";
  const float words = text_width(frame.fonts.sans14, of);
  draw_text_within(frame.fonts.mono14, at, width - words - frame.metrics.px(16), frame.palette.text,
                   sum_words(now));
  draw_text_right(frame.fonts.sans14, at.x + width, at.y, frame.palette.dim, of);
  frame.landmarks.mark("positions/sum", at, {at.x + width, at.y + frame.metrics.px(18)});
}

}  // namespace

bool has_rope_view(const Frame& frame, Stage stage) {
  return (stage == Stage::rotated_queries || stage == Stage::rotated_keys) &&
         frame.displayed.model.additions.positions.rotary && frame.displayed.model.d_head() > 1;
}

float rope_view_height(const Frame& frame) {
  return frame.metrics.frame + pair_height(frame) + frame.metrics.px(10 + 10 + 8 + 22);
}

void draw_rope_view(const Frame& frame, ImVec2 at, float width) {
  const auto& m = frame.metrics;
  const QueryKeyChoice c = query_key_choice(frame);
  const RotaryDot now = c.dot_at(static_cast<double>(c.query_at), static_cast<double>(c.key_at));
  draw_query_key_choice(frame, c, at, width);
  const ImVec2 top{at.x, at.y + m.frame + m.px(10)};
  if (!std::isfinite(now.score)) {
    platform::move_to(top);
    paragraph(frame.fonts.sans14, frame.palette.dim, width,
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
