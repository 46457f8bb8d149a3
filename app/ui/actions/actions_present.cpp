// For an audience: one stage that fills the window, and numbers that fly to their place.
#include <array>
#include <cmath>

#include "app/session/navigation.hpp"
#include "app/ui/actions/action_rows.hpp"

namespace app::rows {
namespace {

constexpr const char* animation = "View/Animation";

bool presents(const Newest& view) {
  return view.selection.presenting.on;
}

std::size_t steps_of_flight(const Situation& s) {
  return s.shown.selection.pinned
             ? flown_cells(s.shown.model, s.shown.trace, *s.shown.selection.pinned).size()
             : 0;
}

/// Why no numbers can fly, or "".
std::string grounded(const Situation& s) {
  if (s.settings.reduce_motion) return "motion is reduced";
  if (!s.shown.selection.pinned) return "no cell is pinned";
  return steps_of_flight(s) > 0 ? "" : "the pinned cell is made of no others";
}

Asked play(const Situation& s) {
  return look([n = steps_of_flight(s)](View& view) { play_flight(view, n); });
}

void add_flight(Rows& rows) {
  rows.push_back({.id = "flight/play",
                  .title = "Let the numbers fly",
                  .menu = animation,
                  .group = 1,
                  .about = "Those that the pinned cell is made of fly to its place, stage after stage",
                  .keys = {shift(Key::space)},
                  .here = outside_editor,
                  .sheet = "Let the numbers of the pinned cell fly, or stop them",
                  .why_not = grounded,
                  .command = play});
  rows.push_back(
      {.id = "present/play",
       .title = "Play or stop",
       .keys = {plain(Key::space)},
       .here = presents,
       .sheet = "Presenting: let the numbers fly, or stop them",
       .why_not =
           [](const Situation& now) { return presents(now.newest) ? grounded(now) : "only when presenting"; },
       .command = play});
  for (const int by : {-1, 1})
    rows.push_back({.id = by < 0 ? "flight/back" : "flight/on",
                    .title = by < 0 ? "One step back" : "One step on",
                    .menu = animation,
                    .group = 1,
                    .keys = {ctrl(by < 0 ? Key::left : Key::right)},
                    .here = outside_editor,
                    .sheet = "The flight of numbers: one step back, on",
                    .why_not = grounded,
                    .command = [by](const Situation& now) {
                      return look([by, n = steps_of_flight(now)](View& view) { step_flight(view, by, n); });
                    }});
  for (const int percent : {25, 50, 100, 200, 400}) {
    const float wanted = static_cast<float>(percent) / 100;
    rows.push_back({.id = "flight/speed/" + std::to_string(percent),
                    .title = "Speed " + std::to_string(percent) + " %",
                    .menu = animation,
                    .group = 1,
                    .part = 1,
                    .command = looks([wanted](View& view) { view.settings.flight_speed = wanted; }),
                    .checked = [wanted](const Situation& now) {
                      return std::fabs(now.settings.flight_speed - wanted) < 0.01f;
                    }});
  }
  rows.push_back({.id = "view/reduce_motion",
                  .title = "Reduce motion",
                  .menu = animation,
                  .group = 1,
                  .part = 2,
                  .about = "Nothing flies and no changed cell flashes; the thin lines of changed cells stay",
                  .command = looks([](View& view) {
                    view.settings.reduce_motion = !view.settings.reduce_motion;
                    view.selection.presenting.flight.reset();
                  }),
                  .checked = [](const Situation& now) { return now.settings.reduce_motion; }});
}

}  // namespace

void add_presenting(Rows& rows) {
  rows.push_back(
      {.id = "view/present",
       .title = "Present",
       .menu = "View",
       .group = 1,
       .about = "Large enough for the last row, without side panels; ← and → go through stages or steps",
       .keys = {plain(Key::f5)},
       .sheet = "Present, or back to the panels",
       .command = looks([](View& view) {
         Presenting& now = view.selection.presenting;
         now.on = !now.on;
         now.flight.reset();
         view.selection.cursor.reset();
         view.selection.tour.reset();
       }),
       .checked = [](const Situation& now) { return now.newest.selection.presenting.on; }});
  rows.push_back(
      {.id = "view/full_screen",
       .title = "Full screen",
       .menu = "View",
       .group = 1,
       .keys = {plain(Key::f11)},
       .command = looks([](View& view) {
         bool& full = view.selection.presenting.full_screen;
         full = !full;
       }),
       .checked = [](const Situation& now) { return now.newest.selection.presenting.full_screen; }});
  add_flight(rows);
}

}  // namespace app::rows
