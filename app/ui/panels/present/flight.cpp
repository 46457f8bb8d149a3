#include "app/ui/panels/present/flight.hpp"

#include <algorithm>
#include <cmath>

#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/actions/actions.hpp"
#include "app/ui/panels/menus/menus.hpp"
#include "app/ui/panels/present/present_panel.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/graph/stages.hpp"

namespace app::panels {

namespace {

using core::attention::Columns;
using core::attention::Rows;
using core::attention::StageInfo;

constexpr float not_computed = 0.86f, not_again = 0.6f;  // how much of a cell is covered

/// Covers cells from a row and a column on, up to others, as far as the map shows them.
void cover_cells(const Frame& frame, const ShownMap& map, std::size_t top, std::size_t bottom,
                 std::size_t left, std::size_t right, float how_much) {
  const ImVec2 min{map.x(static_cast<double>(left)), map.y(static_cast<double>(top))},
      max{map.x(static_cast<double>(right)), map.y(static_cast<double>(bottom))};
  if (min.x < max.x && min.y < max.y)
    ImGui::GetWindowDrawList()->AddRectFilled(min, max, packed(frame.palette.ground.back, how_much));
}

void mark_stage(const Frame& frame, const StageInfo& stage, std::size_t now) {
  if (stage.rows != Rows::queries && stage.rows != Rows::keys) return;
  if (!stage.present(frame.displayed.model)) return;
  const auto map = shown_map(frame, stage);
  if (!map) return;
  const auto [n_rows, n_columns] = core::attention::shape_of(frame.displayed.model, stage.stage);
  ImGui::PushClipRect(map->rect.min, map->rect.max, true);
  if (stage.rows == Rows::queries) cover_cells(frame, *map, 0, now, 0, n_columns, not_again);
  cover_cells(frame, *map, now + 1, n_rows, 0, n_columns, not_computed);
  if (stage.columns == Columns::tokens)
    cover_cells(frame, *map, now, now + 1, now + 1, n_columns, not_computed);
  ImGui::PopClipRect();
  const float thick = frame.metrics.px(2), top = map->y(static_cast<double>(now)),
              bottom = map->y(static_cast<double>(now + 1));
  if (top < map->rect.min.y || bottom > map->rect.max.y) return;
  widgets::outline(ImGui::GetWindowDrawList(), {map->rect.min.x - thick, top - thick},
                   {map->rect.max.x + thick, bottom + thick}, packed(frame.palette.accent), thick);
  frame.landmarks.mark(std::string("decode/new/") + stage.name, {map->rect.min.x, top},
                       {map->rect.max.x, bottom});
}

bool shows_decoding(const Frame& frame) {
  return frame.displayed.look.positions.decoded && frame.displayed.look.tab == Tab::stages &&
         !frame.displayed.look.large && !frame.displayed.selection.presenting.on;
}

/// "Token 3 of 6, “journey”: 2 keys and values are kept, 1 is new".
std::string decoding_words(const Frame& frame, std::size_t now) {
  const auto& tokens = frame.displayed.sequence().tokens;
  const std::string which = "Token " + std::to_string(now + 1) + " of " +
                            std::to_string(frame.displayed.model.n_tokens()) + ", “" + tokens[now] + "”: ";
  if (now == 0) return which + "its key and value are the first in the cache";
  return which + std::to_string(now) +
         (now == 1 ? " key and value is cached, 1 is new" : " keys and values are cached, 1 is new");
}

}  // namespace

void draw_decoding_marks(const Frame& frame) {
  if (!shows_decoding(frame)) return;
  for (const StageInfo& stage : core::attention::stages())
    mark_stage(frame, stage, *frame.displayed.look.positions.decoded);
}

float decoding_bar_height(const Frame& frame) {
  return shows_decoding(frame) ? frame.metrics.px(36) : 0;
}

void draw_decoding_bar(const Frame& frame) {
  const auto& now = frame.displayed.look.positions.decoded;
  if (!now) return;
  const ImVec2 origin = ImGui::GetCursorScreenPos(), window = ImGui::GetWindowPos();
  const float width = ImGui::GetContentRegionAvail().x;
  ImGui::GetWindowDrawList()->AddRectFilled(window, {window.x + ImGui::GetWindowWidth(), window.y + 1},
                                            packed(frame.palette.line));
  const Situation situation = situation_of(frame);
  const std::vector<Action> all = actions(situation);
  platform::move_to({origin.x, origin.y + frame.metrics.px(6)});
  draw_action_button(frame, situation, all, "decode/back", "decode/back", "previous token");
  ImGui::SameLine();
  draw_action_button(frame, situation, all, "decode/on", "decode/on", "next token");
  ImGui::SameLine();
  draw_action_button(frame, situation, all, "decode/close", "decode/close", "all at once");
  ImGui::SameLine();
  const float x = ImGui::GetCursorScreenPos().x + frame.metrics.px(8);
  widgets::draw_text(frame.fonts.sans14, {x, origin.y + frame.metrics.px(18)}, widgets::Align::left_middle,
                     packed(frame.palette.text),
                     widgets::shortened(frame.fonts.sans14, decoding_words(frame, *now),
                                        std::max(1.0f, origin.x + width - x)));
  frame.landmarks.mark("decode/words", {x, origin.y}, {origin.x + width, origin.y + frame.metrics.px(36)});
}

namespace {

ImVec2 bezier(ImVec2 a, ImVec2 b, ImVec2 c, ImVec2 d, float t) {
  const float s = 1 - t;
  const float p = s * s * s, q = 3 * s * s * t, r = 3 * s * t * t, u = t * t * t;
  return {p * a.x + q * b.x + r * c.x + u * d.x, p * a.y + q * b.y + r * c.y + u * d.y};
}

}  // namespace

ImVec2 FlightPath::at(float t) const {
  const auto& p = points;
  return t < 0.5f ? bezier(p[0], p[1], p[2], p[3], 2 * t) : bezier(p[3], p[4], p[5], p[6], 2 * t - 1);
}

std::optional<CellPlace> place_of(const Frame& frame, const core::explain::Place& place) {
  const Stage* stage = std::get_if<Stage>(&place.source);
  if (!stage) return std::nullopt;
  const core::attention::StageInfo& info = core::attention::info(*stage);
  if (info.per_head &&
      core::attention::matrix_of_head(frame.displayed.model, *stage, place.head) !=
          core::attention::matrix_of_head(frame.displayed.model, *stage, frame.displayed.look.head))
    return std::nullopt;
  const auto map = shown_map(frame, info);
  if (!map) return std::nullopt;
  const auto row = static_cast<double>(place.row), column = static_cast<double>(place.column);
  const CellWindow& part = map->part;
  if (row + 0.5 < part.top || row + 0.5 > part.bottom || column + 0.5 < part.left ||
      column + 0.5 > part.right)
    return std::nullopt;
  return CellPlace{{map->x(column), map->y(row)}, {map->x(column + 1), map->y(row + 1)}};
}

FlightPath path_between(const Frame& frame, const CellPlace& from, const CellPlace& to, std::size_t k,
                        std::size_t n) {
  const auto px = [&](float length) { return frame.metrics.px(length); };
  const float share = n > 1 ? static_cast<float>(k) / static_cast<float>(n - 1) : 0;
  const ImVec2 start{(from.min.x + from.max.x) / 2, from.min.y};
  const ImVec2 end{to.min.x + std::min(px(6), (to.max.x - to.min.x) * 0.2f),
                   to.min.y + std::min(px(5), (to.max.y - to.min.y) * 0.3f)};
  // Lines come in at the gap above the target's row, whichever side they come from.
  const bool from_left = start.x <= end.x;
  const float side = from_left ? -1.0f : 1.0f;
  const float far = std::abs(end.x - start.x);
  const float lane = to.min.y - px(1);
  const ImVec2 meet{end.x + side * std::clamp(far * 0.45f, px(8), std::max(px(8), far - px(12))), lane};
  // Up by a part of the cell, not over the labels above its map, before it goes to the lane.
  const float lift = (from.max.y - from.min.y) * (0.25f + 0.25f * (1 - share));
  const float run = std::max(px(8), std::abs(meet.x - start.x) * 0.2f);
  const ImVec2 up{start.x, start.y - lift};
  const ImVec2 before{meet.x + side * run, meet.y};
  const float last = std::abs(end.x - meet.x);
  const ImVec2 after{meet.x - side * last * 0.45f, meet.y};
  const ImVec2 into{end.x + side * last * 0.3f, end.y - px(2)};
  return {{start, up, before, meet, after, into, end}};
}

namespace {

using core::explain::Cells;
using core::explain::Place;

constexpr std::size_t most_numbers = 12;  // more would be a swarm
constexpr float line_width = 1.5f, behind = 0.75f, ahead = 0.35f;
constexpr double flying_share = 0.8;  // of a step; then the number stands in its place

/// The numbers that a cell is made of and that are on the screen.
std::vector<Place> flying(const Frame& frame, const CellRef& to) {
  std::vector<Place> places;
  for (const Cells& cells : core::explain::operands(frame.displayed.model, frame.displayed.trace, to))
    for (std::size_t k = 0; k < cells.count() && places.size() < most_numbers; ++k)
      if (place_of(frame, cells.at(k))) places.push_back(cells.at(k));
  return places;
}

void draw_path(ImDrawList* list, const FlightPath& path, float t, Rgb color) {
  constexpr int pieces = 48;
  for (int k = 0; k < pieces; ++k) {
    const float a = static_cast<float>(k) / pieces, b = static_cast<float>(k + 1) / pieces;
    list->AddLine(path.at(a), path.at(b), packed(color, b <= t ? behind : ahead), line_width);
  }
}

/// The box of a number that flies at a place.
app::Landmarks::Rect box_of(const Frame& frame, ImVec2 at, const std::string& text) {
  ImFont* font = frame.fonts.mono13;
  const float half = widgets::text_width(font, text) / 2 + frame.metrics.px(4),
              high = platform::font_size(font) / 2 + frame.metrics.px(2);
  return {{std::round(at.x - half), std::round(at.y - high)},
          {std::round(at.x + half), std::round(at.y + high)}};
}

bool meet(const app::Landmarks::Rect& a, const app::Landmarks::Rect& b) {
  return a.min.x < b.max.x && b.min.x < a.max.x && a.min.y < b.max.y && b.min.y < a.max.y;
}

void draw_number(const Frame& frame, ImDrawList* list, const app::Landmarks::Rect& box,
                 const std::string& text, std::size_t k) {
  ImFont* font = frame.fonts.mono13;
  const auto& [min, max] = box;
  list->AddRectFilled(min, max, packed(frame.palette.ground.back, 0.92f), frame.metrics.px(2));
  list->AddText(font, platform::font_size(font),
                {std::round(min.x + frame.metrics.px(4)), std::round(min.y + frame.metrics.px(2))},
                packed(frame.palette.operand), text.c_str());
  frame.landmarks.mark("flight/number/" + std::to_string(k), min, max);
}

/// Slow at both ends.
float eased(double t) {
  const double s = std::clamp(t, 0.0, 1.0);
  return static_cast<float>(s * s * (3 - 2 * s));
}

void go_on(const Frame& frame, const AnimationLeg& leg) {
  const auto& flight = frame.displayed.selection.presenting.flight;
  if (!flight->runs || frame.settings.reduce_motion) return;
  const double by =
      static_cast<double>(ImGui::GetIO().DeltaTime) * frame.settings.animation_speed / leg_seconds;
  frame.commands.add(AdvanceAnimation{std::min(by, 0.25), leg.count});
}

}  // namespace

void draw_animation(const Frame& frame) {
  const auto leg = leg_under_way(frame.displayed);
  if (!leg || frame.forms.dialog != Dialog::none) return;
  go_on(frame, *leg);
  const auto target = place_of(frame, {leg->to.stage, leg->to.head, leg->to.row, leg->to.column});
  if (!target) return;
  ImDrawList* list = ImGui::GetForegroundDrawList();
  const auto region = frame.landmarks.find("region/stages");
  if (region) list->PushClipRect(region->min, region->max);
  const std::vector<Place> places = flying(frame, leg->to);
  const double t = leg->share / flying_share;
  const bool arrived = t >= 1;
  std::vector<app::Landmarks::Rect> taken;
  for (std::size_t k = 0; k < places.size() && !arrived; ++k) {
    const FlightPath path = path_between(frame, *place_of(frame, places[k]), *target, k, places.size());
    const double wait = 0.25 * static_cast<double>(k) / static_cast<double>(places.size());
    const float along = eased((t - wait) / 0.75);
    draw_path(list, path, along, frame.palette.operand);
    const auto& info = core::attention::info(std::get<Stage>(places[k].source));
    const double value =
        frame.displayed.trace.at(info.stage, places[k].head)(places[k].row, places[k].column);
    // Where two would cover each other the later one waits behind, or in its cell.
    const std::string text = widgets::fixed(value, 4);
    for (float at = along; at >= 0; at -= 0.01f) {
      const app::Landmarks::Rect box = box_of(frame, path.at(at), text);
      if (std::ranges::any_of(taken, [&](const auto& other) { return meet(box, other); })) continue;
      draw_number(frame, list, box, text, k);
      taken.push_back(box);
      break;
    }
  }
  const float thick = frame.metrics.px(2);
  widgets::outline(list, {target->min.x - thick, target->min.y - thick},
                   {target->max.x + thick - 1, target->max.y + thick - 1},
                   packed(frame.palette.operand, arrived ? 1.0f : 0.5f), thick);
  frame.landmarks.mark("flight/target", target->min, target->max);
  if (region) list->PopClipRect();
}

std::string flight_words(const Frame& frame) {
  const auto leg = leg_under_way(frame.displayed);
  if (!leg) return "";
  const auto& to = core::attention::info(leg->to.stage);
  std::string from;
  for (const Cells& cells : core::explain::operands(frame.displayed.model, frame.displayed.trace, leg->to)) {
    const Stage* stage = std::get_if<Stage>(&cells.source);
    const std::string name = stage ? core::attention::info(*stage).title : "";
    if (!name.empty() && from.find(name) == from.npos) from += (from.empty() ? "" : ", ") + name;
  }
  return std::to_string(leg->index + 1) + " of " + std::to_string(leg->count) + "   " +
         (from.empty() ? "" : from + " → ") + to.title + " " +
         widgets::fixed(frame.displayed.trace.at(to.stage, leg->to.head)(leg->to.row, leg->to.column), 4);
}

float animation_bar_height(const Frame& frame) {
  const auto& presenting = frame.displayed.selection.presenting;
  return presenting.flight && !presenting.on ? frame.metrics.px(36) : 0;
}

void draw_animation_bar(const Frame& frame) {
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const ImVec2 window = ImGui::GetWindowPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(window, {window.x + ImGui::GetWindowWidth(), window.y + 1}, packed(frame.palette.line));
  const Situation situation = situation_of(frame);
  const std::vector<Action> all = actions(situation);
  const bool runs =
      frame.displayed.selection.presenting.flight && frame.displayed.selection.presenting.flight->runs;
  platform::move_to({origin.x, origin.y + frame.metrics.px(6)});
  draw_action_button(frame, situation, all, "flight/back", "flight/back", "back");
  ImGui::SameLine();
  draw_action_button(frame, situation, all, "flight/play", runs ? "flight/stop" : "flight/play",
                     runs ? "stop" : "play");
  ImGui::SameLine();
  draw_action_button(frame, situation, all, "flight/on", "flight/on", "on");
  ImGui::SameLine();
  const float speed = frame.settings.animation_speed;
  const auto change = [&](const char* name, const char* words, float factor, const char* help) {
    if (widgets::button(frame, name, words, help))
      frame.commands.add(set<&Settings::animation_speed>(std::clamp(speed * factor, 0.25f, 4.0f)));
    ImGui::SameLine();
  };
  change("flight/slower", "slower", 0.5f, "Half as fast, down to a quarter");
  change("flight/faster", "faster", 2, "Twice as fast, up to four times");
  if (widgets::button(frame, "flight/close", "close", "Closes the animation (Esc)"))
    frame.commands.add(set<&Presenting::flight>(std::nullopt));
  ImGui::SameLine();
  const float x = ImGui::GetCursorScreenPos().x + frame.metrics.px(8);
  const std::string words = flight_words(frame) + "   speed " + widgets::fixed(speed * 100, 0) + " %";
  widgets::draw_text(frame.fonts.sans14, {x, origin.y + frame.metrics.px(18)}, widgets::Align::left_middle,
                     packed(frame.palette.dim),
                     widgets::shortened(frame.fonts.sans14, words, std::max(1.0f, origin.x + width - x)));
}

}  // namespace app::panels
