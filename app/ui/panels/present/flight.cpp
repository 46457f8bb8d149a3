#include "app/ui/panels/present/flight.hpp"

#include <algorithm>
#include <cmath>

#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/actions/actions.hpp"
#include "app/ui/panels/menus/action_menu.hpp"
#include "app/ui/panels/present/flight_paths.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/number_text.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

using core::explain::Cells;
using core::explain::Place;

constexpr std::size_t most_numbers = 12;  // more would be a swarm
constexpr float line_width = 1.5f, behind = 0.75f, ahead = 0.35f;
constexpr double flying_share = 0.8;  // of a step; then the number stands in its place

/// The numbers that a cell is made of and that are on the screen.
std::vector<Place> flying(const Frame& frame, const CellRef& to) {
  std::vector<Place> places;
  for (const Cells& cells : core::explain::operands(frame.shown.model, frame.shown.trace, to))
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

void go_on(const Frame& frame, const FlightLeg& leg) {
  const auto& flight = frame.shown.selection.presenting.flight;
  if (!flight->runs || frame.settings.reduce_motion) return;
  const double by = static_cast<double>(ImGui::GetIO().DeltaTime) * frame.settings.flight_speed / leg_seconds;
  frame.commands.look([by = std::min(by, 0.25), n = leg.count](View& view) { advance_flight(view, by, n); });
}

}  // namespace

void draw_flight(const Frame& frame) {
  const auto leg = leg_under_way(frame.shown);
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
    const double value = info.matrix(frame.shown.trace, places[k].head)(places[k].row, places[k].column);
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
  const auto leg = leg_under_way(frame.shown);
  if (!leg) return "";
  const auto& to = core::attention::info(leg->to.stage);
  std::string from;
  for (const Cells& cells : core::explain::operands(frame.shown.model, frame.shown.trace, leg->to)) {
    const Stage* stage = std::get_if<Stage>(&cells.source);
    const std::string name = stage ? core::attention::info(*stage).title : "";
    if (!name.empty() && from.find(name) == from.npos) from += (from.empty() ? "" : ", ") + name;
  }
  return std::to_string(leg->index + 1) + " of " + std::to_string(leg->count) + "   " +
         (from.empty() ? "" : from + " → ") + to.title + " " +
         widgets::fixed(to.matrix(frame.shown.trace, leg->to.head)(leg->to.row, leg->to.column), 4);
}

float flight_bar_height(const Frame& frame) {
  const auto& presenting = frame.shown.selection.presenting;
  return presenting.flight && !presenting.on ? frame.metrics.px(36) : 0;
}

void draw_flight_bar(const Frame& frame) {
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const ImVec2 window = ImGui::GetWindowPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(window, {window.x + ImGui::GetWindowWidth(), window.y + 1}, packed(frame.palette.line));
  const Situation situation = situation_of(frame);
  const std::vector<Action> all = actions(situation);
  const bool runs = frame.shown.selection.presenting.flight && frame.shown.selection.presenting.flight->runs;
  platform::move_to({origin.x, origin.y + frame.metrics.px(6)});
  draw_action_button(frame, situation, all, "flight/back", "flight/back", "back");
  ImGui::SameLine();
  draw_action_button(frame, situation, all, "flight/play", runs ? "flight/stop" : "flight/play",
                     runs ? "stop" : "play");
  ImGui::SameLine();
  draw_action_button(frame, situation, all, "flight/on", "flight/on", "on");
  ImGui::SameLine();
  const float speed = frame.settings.flight_speed;
  const auto change = [&](const char* name, const char* words, float factor, const char* help) {
    if (widgets::button(frame, name, words, help))
      frame.commands.look(
          [to = std::clamp(speed * factor, 0.25f, 4.0f)](View& view) { view.settings.flight_speed = to; });
    ImGui::SameLine();
  };
  change("flight/slower", "slower", 0.5f, "Half as fast, down to a quarter");
  change("flight/faster", "faster", 2, "Twice as fast, up to four times");
  if (widgets::button(frame, "flight/close", "close", "Puts the flight away (Esc)"))
    frame.commands.look([](View& view) { view.selection.presenting.flight.reset(); });
  ImGui::SameLine();
  const float x = ImGui::GetCursorScreenPos().x + frame.metrics.px(8);
  const std::string words = flight_words(frame) + "   speed " + widgets::fixed(speed * 100, 0) + " %";
  widgets::draw_text(frame.fonts.sans14, {x, origin.y + frame.metrics.px(18)}, widgets::Align::left_middle,
                     packed(frame.palette.dim),
                     widgets::shortened(frame.fonts.sans14, words, std::max(1.0f, origin.x + width - x)));
}

}  // namespace app::panels
