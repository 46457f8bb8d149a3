#include "app/ui/panels/stages/turning_circle.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/number_text.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

using core::positions::Arrow;
using widgets::Align;

constexpr float tip_room = 9;  // at scale 1
constexpr double degrees = 180 / std::numbers::pi;

double length_of(Arrow a) {
  return std::hypot(a.x, a.y);
}

/// Where the arrows of one pair stand on the screen; up is up.
struct Dial {
  ImVec2 middle;
  float radius;
  double longest;
  ImVec2 point(Arrow a) const {
    const double scale = radius / longest;
    return {middle.x + static_cast<float>(a.x * scale), middle.y - static_cast<float>(a.y * scale)};
  }
  Arrow arrow(ImVec2 p) const {
    const double scale = longest / radius;
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

/// From one angle to another, which may lie several turns on; more than a whole turn is a whole circle.
void arc(const Dial& dial, double from, double to, float r, ImU32 color, float thickness) {
  constexpr double whole = 2 * std::numbers::pi;
  const double by = std::clamp(to - from, -whole, whole);
  const int steps = std::max(2, static_cast<int>(std::fabs(by) * 16));
  std::vector<ImVec2> points;
  for (int k = 0; k <= steps; ++k) points.push_back(dial.on(from + by * k / steps, r));
  ImGui::GetWindowDrawList()->AddPolyline(points.data(), static_cast<int>(points.size()), color, 0,
                                          thickness);
}

void head_at(ImVec2 tip, double angle, float size, ImU32 color) {
  const auto corner = [&](double by) {
    return ImVec2(tip.x - size * static_cast<float>(std::cos(angle + by)),
                  tip.y + size * static_cast<float>(std::sin(angle + by)));
  };
  ImGui::GetWindowDrawList()->AddTriangleFilled(tip, corner(0.42), corner(-0.42), color);
}

/// An arrow from the middle, the way it was turned as an arc on the rim: a dot before, a head after.
void draw_arrow_of(const Frame& frame, const Dial& dial, Arrow before, Arrow after, double turn, float beyond,
                   Rgb color) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImU32 ink = packed(color);
  const float r = dial.radius + frame.metrics.px(beyond);
  if (length_of(before) > 0) {
    const double from = angle_of(before), to = from + turn;
    arc(dial, from, to, r, packed(color, 0.7f), 1.5f);
    list->AddCircleFilled(dial.on(from, r), frame.metrics.px(2.5f), ink);
    if (turn != 0)
      head_at(dial.on(to, r), to + (turn < 0 ? -1 : 1) * std::numbers::pi / 2, frame.metrics.px(6), ink);
  }
  const ImVec2 tip = dial.point(after);
  list->AddLine(dial.middle, tip, ink, frame.metrics.px(2));
  if (length_of(after) > 0) head_at(tip, angle_of(after), frame.metrics.px(9), ink);
}

/// Where the words on an angle stand: in it, or, where it is too narrow for them, beside the query; within
/// the rim.
ImVec2 place_of_angle(const Frame& frame, const Dial& dial, double key, double by, float beyond,
                      ImVec2 half) {
  const auto across = [&](double angle) {
    return half.x * std::fabs(std::sin(angle)) + half.y * std::fabs(std::cos(angle));
  };
  const auto distance = [&](double angle) {
    const double along = half.x * std::fabs(std::cos(angle)) + half.y * std::fabs(std::sin(angle));
    return std::min<double>(beyond + frame.metrics.px(20), dial.radius - along - frame.metrics.px(3));
  };
  double angle = key + by / 2;
  if (std::fabs(by) < 1) {
    const double query = key + by, free = across(query) + frame.metrics.px(5);
    angle = query + (by < 0 ? -1 : 1) * std::asin(std::min(0.95, free / distance(query)));
  }
  return dial.on(angle, static_cast<float>(distance(angle)));
}

/// The smaller angle between the two, with its size.
void draw_angle(const Frame& frame, const Dial& dial, Arrow query, Arrow key) {
  if (length_of(query) == 0 || length_of(key) == 0) return;
  const double from = angle_of(key);
  const double by = std::remainder(angle_of(query) - from, 2 * std::numbers::pi);
  const bool small = frame.metrics.compact;
  const float r = frame.metrics.px(small ? 16 : 26);
  arc(dial, from, from + by, r, packed(frame.palette.text), 1.5f);
  const double size = std::fabs(by) * degrees;
  const std::string words = widgets::fixed(size, small && size >= 57 ? 0 : 1) + "°";
  const ImVec2 half{widgets::text_width(frame.fonts.mono12, words) / 2 + 2, frame.metrics.px(7)};
  const ImVec2 at = place_of_angle(frame, dial, from, by, r, half);
  ImGui::GetWindowDrawList()->AddRectFilled({at.x - half.x, at.y - half.y}, {at.x + half.x, at.y + half.y},
                                            packed(frame.palette.ground.back, 0.85f));
  widgets::draw_text(frame.fonts.mono12, at, Align::middle, packed(frame.palette.text), words);
}

/// The tip of an arrow as an item; dragged, the numbers before the turn become those that lead to the mouse.
std::optional<MovedArrow> drag_tip(const Frame& frame, const Dial& dial, const TurningPair& pair,
                                   bool of_key) {
  const Arrow after = of_key ? pair.now.rotated_key : pair.now.rotated_query;
  const double turn = of_key ? pair.now.key_angle : pair.now.query_angle;
  const std::string name =
      std::string(of_key ? "positions/key_tip/" : "positions/query_tip/") + std::to_string(pair.index);
  const float room = frame.metrics.px(tip_room);
  const ImVec2 tip = dial.point(after);
  platform::move_to({tip.x - room, tip.y - room});
  widgets::hit_area(name.c_str(), {2 * room, 2 * room});
  frame.landmarks.mark_item(name);
  if (ImGui::IsItemHovered() || ImGui::IsItemActive()) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    ImGui::GetWindowDrawList()->AddCircle(tip, room, packed(frame.palette.accent), 0, 2);
  }
  const bool let_go = ImGui::IsItemDeactivated();
  if (!let_go && !(ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Left, 2)))
    return std::nullopt;
  if (let_go && !pair.is_held) return std::nullopt;  // a click
  const Arrow before = core::positions::rotate(dial.arrow(ImGui::GetMousePos()), -turn);
  return MovedArrow{of_key, pair.index, before, !let_go};
}

/// The radius of the circles, in pixels.
float rim(const Frame& frame) {
  return frame.metrics.px(frame.metrics.compact ? 44 : 60);
}

void draw_turn_line(const Frame& frame, ImVec2 at, const char* words, double angle, Rgb color) {
  widgets::draw_text(frame.fonts.sans13, at, Align::left_middle, packed(frame.palette.dim), words);
  widgets::draw_text(frame.fonts.mono12, {at.x + frame.metrics.px(pair_width), at.y}, Align::right_middle,
                     packed(color), widgets::fixed(angle * degrees, 2) + "°");
}

/// The share as a bar with zero in the middle, and as a number.
void draw_share(const Frame& frame, const TurningPair& pair, ImVec2 at) {
  widgets::draw_text(frame.fonts.sans13, at, Align::left_middle, packed(frame.palette.dim), "share");
  const float left = at.x + frame.metrics.px(42), width = frame.metrics.px(72), zero = left + width / 2;
  const float top = at.y - frame.metrics.px(5), bottom = at.y + frame.metrics.px(5);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled({left, top}, {left + width, bottom}, packed(frame.palette.control.rest));
  const double part = pair.most_share > 0 ? pair.now.share / pair.most_share : 0;
  const float length = std::max(2.0f, static_cast<float>(std::fabs(part)) * width / 2);
  const Rgb color =
      render::color_at(render::ColorMap::values, frame.palette.dark, 0.5 + (part < 0 ? -0.35 : 0.35));
  list->AddRectFilled({part < 0 ? zero - length : zero, top}, {part < 0 ? zero : zero + length, bottom},
                      packed(color));
  widgets::draw_text(frame.fonts.mono13, {at.x + frame.metrics.px(pair_width), at.y}, Align::right_middle,
                     packed(frame.palette.text), widgets::fixed(pair.now.share, 4));
}

}  // namespace

float pair_height(const Frame& frame) {
  return 2 * rim(frame) + frame.metrics.px(138);
}

std::optional<MovedArrow> draw_turning_circle(const Frame& frame, const TurningPair& pair, ImVec2 at) {
  const auto& m = frame.metrics;
  const auto& p = frame.palette;
  const auto& now = pair.now;
  const std::string name = "pair " + std::to_string(pair.index);
  widgets::draw_text(frame.fonts.sans14, {at.x, at.y + m.px(9)}, Align::left_middle, packed(p.text), name);
  widgets::draw_text(
      frame.fonts.sans12, {at.x + widgets::text_width(frame.fonts.sans14, name) + m.px(10), at.y + m.px(9)},
      Align::left_middle, packed(p.faint),
      "columns " + std::to_string(now.columns.first) + ", " + std::to_string(now.columns.second));
  const Dial dial{{std::round(at.x + m.px(pair_width / 2)), std::round(at.y + m.px(36) + rim(frame))},
                  rim(frame),
                  pair.longest};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddCircleFilled(dial.middle, dial.radius, packed(p.ground.back), 64);
  list->AddCircle(dial.middle, dial.radius, packed(p.strong_line), 64);
  list->AddLine({dial.middle.x - dial.radius, dial.middle.y}, {dial.middle.x + dial.radius, dial.middle.y},
                packed(p.line));
  list->AddLine({dial.middle.x, dial.middle.y - dial.radius}, {dial.middle.x, dial.middle.y + dial.radius},
                packed(p.line));
  draw_arrow_of(frame, dial, now.key, now.rotated_key, now.key_angle, 9, p.operand);
  draw_arrow_of(frame, dial, now.query, now.rotated_query, now.query_angle, 5, p.selection);
  draw_angle(frame, dial, now.rotated_query, now.rotated_key);
  const auto query = drag_tip(frame, dial, pair, false), key = drag_tip(frame, dial, pair, true);
  frame.landmarks.mark("positions/circle/" + std::to_string(pair.index),
                       {dial.middle.x - dial.radius, dial.middle.y - dial.radius},
                       {dial.middle.x + dial.radius, dial.middle.y + dial.radius});
  const float lines = at.y + 2 * rim(frame) + m.px(70);
  draw_turn_line(frame, {at.x, lines}, "query turned", now.query_angle, p.text);
  draw_turn_line(frame, {at.x, lines + m.px(19)}, "key turned", now.key_angle, p.operand);
  draw_share(frame, pair, {at.x, lines + m.px(42)});
  return query ? query : key;
}

}  // namespace app::panels
