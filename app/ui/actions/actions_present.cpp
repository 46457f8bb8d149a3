#include <algorithm>
#include <array>
#include <cmath>

#include "app/session/navigation.hpp"
#include "app/ui/actions/action_rows.hpp"

namespace app::rows {

namespace {

constexpr const char* animation = "View/Animation";

bool presents(const Pending& view) {
  return view.selection.presenting.on;
}

std::size_t steps_of_flight(const Situation& s) {
  return s.displayed.selection.pinned
             ? flown_cells(s.displayed.model, s.displayed.trace, *s.displayed.selection.pinned).size()
             : 0;
}

/// Returns why operands cannot be animated, or "".
std::string grounded(const Situation& s) {
  if (s.settings.reduce_motion) return "motion is reduced";
  if (!s.displayed.selection.pinned) return "no cell is pinned";
  return steps_of_flight(s) > 0 ? "" : "the pinned value is not computed from others";
}

Asked play(const Situation& s) {
  return {PlayAnimation{steps_of_flight(s)}};
}

void add_flight(Rows& rows) {
  rows.push_back({.id = "flight/play",
                  .title = "Animate operands",
                  .menu = animation,
                  .group = 1,
                  .about = "The operands of the pinned value move to its cell, stage by stage",
                  .keys = {shift(Key::space)},
                  .here = outside_editor,
                  .sheet = "Animate the operands of the pinned value, or pause",
                  .why_not = grounded,
                  .command = play});
  rows.push_back({.id = "present/play",
                  .title = "Play or stop",
                  .keys = {plain(Key::space)},
                  .here = presents,
                  .sheet = "Presenting: animate the operands, or pause",
                  .why_not =
                      [](const Situation& now) {
                        return presents(now.pending) ? grounded(now) : "only when presenting";
                      },
                  .command = play});
  for (const int by : {-1, 1})
    rows.push_back({.id = by < 0 ? "flight/back" : "flight/on",
                    .title = by < 0 ? "Previous step" : "Next step",
                    .menu = animation,
                    .group = 1,
                    .keys = {ctrl(by < 0 ? Key::left : Key::right)},
                    .here = outside_editor,
                    .sheet = "Operand animation: previous, next step",
                    .why_not = grounded,
                    .command = [by](const Situation& now) {
                      return Asked{StepAnimation{by, steps_of_flight(now)}};
                    }});
  for (const int percent : {25, 50, 100, 200, 400}) {
    const float wanted = static_cast<float>(percent) / 100;
    rows.push_back({.id = "flight/speed/" + std::to_string(percent),
                    .title = "Speed " + std::to_string(percent) + " %",
                    .menu = animation,
                    .group = 1,
                    .part = 1,
                    .command = always(set<&Settings::animation_speed>(wanted)),
                    .checked = [wanted](const Situation& now) {
                      return std::fabs(now.settings.animation_speed - wanted) < 0.01f;
                    }});
  }
  rows.push_back({.id = "view/reduce_motion",
                  .title = "Reduce motion",
                  .menu = "File/Preferences",
                  .group = 1,
                  .part = 2,
                  .about = "Turns animations and flashes off; changed cells keep a thin outline",
                  .command =
                      [](const Situation& now) {
                        return Asked{set<&Settings::reduce_motion>(!now.settings.reduce_motion),
                                     set<&Presenting::flight>(std::nullopt)};
                      },
                  .checked = [](const Situation& now) { return now.settings.reduce_motion; }});
}

}  // namespace

void add_presenting(Rows& rows) {
  rows.push_back(
      {.id = "view/present",
       .title = "Present",
       .menu = "View",
       .group = 1,
       .about = "Shows the view large and without side panels; ← and → change the stage or step",
       .keys = {plain(Key::f5)},
       .sheet = "Present, or return to the panels",
       .command = [](const Situation& now) { return Asked{Present{!now.pending.selection.presenting.on}}; },
       .checked = [](const Situation& now) { return now.pending.selection.presenting.on; }});
  rows.push_back(
      {.id = "view/full_screen",
       .title = "Full screen",
       .menu = "View",
       .group = 1,
       .keys = {plain(Key::f11)},
       .command =
           [](const Situation& now) {
             return Asked{set<&Presenting::full_screen>(!now.pending.selection.presenting.full_screen)};
           },
       .checked = [](const Situation& now) { return now.pending.selection.presenting.full_screen; }});
  add_flight(rows);
}

namespace {

constexpr const char* walk_menu = "View/Walk";

struct Step {
  const char* id;
  const char* title;
  Key key;
  int down, right;
};
constexpr std::array steps{
    Step{"cell/above", "Cell above", Key::up, -1, 0}, Step{"cell/below", "Cell below", Key::down, 1, 0},
    Step{"cell/left", "Cell left", Key::left, 0, -1}, Step{"cell/right", "Cell right", Key::right, 0, 1}};

/// Returns the neighbor of the pinned cell, or the first cell when none is pinned; nothing at the edge.
std::optional<std::pair<CellRef, Shape>> neighbour(const Situation& s, const Step& step) {
  const auto& stage = core::attention::info(stage_at_hand(s));
  const core::attention::StageMatrix& numbers = s.displayed.trace.at(stage.stage, s.displayed.look.head);
  const Shape shape{numbers.n_rows(), numbers.n_cols()};
  CellRef cell{stage.stage, stage.per_head ? s.displayed.look.head : 0, 0, 0};
  const auto moved = [](std::size_t from, int by, std::size_t count) {
    return by < 0 ? from - (from > 0) : by > 0 ? std::min<std::size_t>(from + 1, count - 1) : from;
  };
  if (s.displayed.selection.pinned) {
    cell.row = moved(s.displayed.selection.pinned->row, step.down, shape.first);
    cell.column = moved(s.displayed.selection.pinned->column, step.right, shape.second);
  }
  if (s.displayed.selection.pinned == cell) return std::nullopt;
  return std::pair{cell, shape};
}

void add_cells(Rows& rows) {
  for (const Step& step : steps)
    rows.push_back(
        {.id = step.id,
         .title = step.title,
         .menu = walk_menu,
         .group = 5,
         .keys = {shift(step.key)},
         .here = outside_editor,
         .sheet = "Move the pinned cell",
         .why_not = unless([&step](const Situation& now) { return neighbour(now, step).has_value(); },
                           "the pinned cell is at the edge"),
         .command = [&step](const Situation& now) {
           const auto [cell, shape] = *neighbour(now, step);
           return Asked{PinCell{cell}, BringIntoPart{shape, cell.row, cell.column}};
         }});
}

/// Returns the cell at the same row and column, clamped, in the previous (−1) or next (+1) shown stage.
std::optional<CellRef> in_stage(const Situation& s, int by) {
  const auto all = core::attention::stages();
  auto at = static_cast<std::ptrdiff_t>(stage_at_hand(s)) + by;
  const auto count = static_cast<std::ptrdiff_t>(all.size());
  const auto shown = [&](std::ptrdiff_t k) {
    const auto& stage = all[static_cast<std::size_t>(k)];
    return stage.present(s.displayed.model) && !s.displayed.look.folded.contains(stage.stage);
  };
  while (at >= 0 && at < count && !shown(at)) at += by;
  if (at < 0 || at >= count) return std::nullopt;
  const auto& stage = all[static_cast<std::size_t>(at)];
  const core::attention::StageMatrix& numbers = s.displayed.trace.at(stage.stage, s.displayed.look.head);
  CellRef cell{stage.stage, stage.per_head ? s.displayed.look.head : 0, 0, 0};
  if (s.displayed.selection.pinned) {
    cell.row = std::min<std::size_t>(s.displayed.selection.pinned->row, numbers.n_rows() - 1);
    cell.column = std::min<std::size_t>(s.displayed.selection.pinned->column, numbers.n_cols() - 1);
  }
  return cell;
}

bool presents_alone(const Pending& view) {
  return view.selection.presenting.on && !view.selection.lesson && !view.selection.cursor;
}

/// Adds plain arrow keys that change the presented stage, as they change the step of a lesson.
void add_presented_stages(Rows& rows) {
  for (const int by : {-1, 1})
    rows.push_back(
        {.id = by < 0 ? "present/back" : "present/next",
         .title = by < 0 ? "Present the previous stage" : "Present the next stage",
         .keys = {plain(by < 0 ? Key::left : Key::right)},
         .here = presents_alone,
         .sheet = "Presenting: previous, next stage",
         .why_not = [by](const Situation& now) -> std::string {
           if (!presents_alone(now.pending)) return "only when presenting";
           return in_stage(now, by) ? "" : by < 0 ? "this is the first stage" : "this is the last stage";
         },
         .command =
             [by](const Situation& now) {
               return Asked{set<&Presenting::flight>(std::nullopt), PinCell{*in_stage(now, by)}};
             }});
}

void add_neighbouring_stages(Rows& rows) {
  for (const int by : {-1, 1})
    rows.push_back(
        {.id = by < 0 ? "cell/stage_before" : "cell/stage_after",
         .title = by < 0 ? "Previous stage" : "Next stage",
         .menu = walk_menu,
         .group = 5,
         .part = 1,
         .keys = {shift(by < 0 ? Key::page_up : Key::page_down)},
         .here = outside_editor,
         .sheet = "The same cell in the previous, next stage",
         .written = "Shift+Page up, down",
         .why_not = [by](const Situation& now) -> std::string {
           if (now.displayed.look.tab != Tab::stages) return "only in Stages";
           return in_stage(now, by) ? "" : by < 0 ? "this is the first stage" : "this is the last stage";
         },
         .command =
             [by](const Situation& now) {
               const CellRef cell = *in_stage(now, by);
               Asked asked{PinCell{cell}};
               if (now.pending.look.large) asked.push_back(set<&Look::large>(cell.stage));
               return asked;
             }});
}

/// Pins the query above or below the pinned one in the token view; the first press pins an end.
Asked move_query(const Situation& s, bool down) {
  const std::size_t last = s.pending.model.n_tokens() - 1;
  const auto& pinned = s.pending.look.tokens.pinned_query;
  const std::size_t next = !pinned ? (down ? 0 : last)
                           : down  ? std::min(*pinned + 1, last)
                                   : *pinned - (*pinned > 0);
  return Asked{set<&TokensLook::pinned_query>(next), set<&TokensLook::comes_into_view>(true)};
}

void add_queries(Rows& rows) {
  for (const bool down : {false, true})
    rows.push_back(
        {.id = down ? "query/below" : "query/above",
         .title = down ? "Query below" : "Query above",
         .menu = walk_menu,
         .group = 5,
         .part = 2,
         .keys = {plain(down ? Key::down : Key::up)},
         .here = in_tokens,
         .sheet = "In Tokens: pin the query above, below",
         .why_not = unless([](const Situation& now) { return now.displayed.look.tab == Tab::tokens; },
                           "only in Tokens"),
         .command = [down](const Situation& now) { return move_query(now, down); }});
}

/// Returns the command of the first thing that Esc would release, or nothing.
std::optional<Command> released(const Situation& s) {
  const Pending& v = s.pending;
  if (v.selection.presenting.flight) return set<&Presenting::flight>(std::nullopt);
  if (v.selection.presenting.on) return set<&Presenting::on>(false);
  if (v.selection.cursor) return set<&Selection::cursor>(std::nullopt);
  if (v.look.tab == Tab::layers && v.layers && v.layers->token) return set<&LayersLook::token>(std::nullopt);
  if ((v.look.tab == Tab::tokens || v.look.tab == Tab::layers) && v.look.tokens.pinned_query)
    return set<&TokensLook::pinned_query>(std::nullopt);
  if (v.selection.pinned) return ReleaseCell{};
  if (v.look.tab == Tab::stages && v.look.large) return set<&Look::large>(std::nullopt);
  if (v.look.tab == Tab::laboratory) return set<&Look::tab>(Tab::stages);
  if (v.selection.lesson) return LeaveLesson{};
  return std::nullopt;
}

}  // namespace

void add_walking(Rows& rows, const Situation&) {
  add_cells(rows);
  add_neighbouring_stages(rows);
  add_presented_stages(rows);
  add_queries(rows);
  rows.push_back({.id = "cell/back",
                  .title = "Back to the previous cell",
                  .menu = walk_menu,
                  .group = 5,
                  .part = 3,
                  .keys = {plain(Key::backspace)},
                  .here = outside_editor,
                  .sheet = "Back to the cell whose operand you followed",
                  .why_not = unless([](const Situation& now) { return !now.pending.selection.trail.empty(); },
                                    "no operand has been followed"),
                  .command = always(GoBack{})});
  rows.push_back(
      {.id = "cell/release",
       .title = "Release",
       .menu = walk_menu,
       .group = 5,
       .part = 3,
       .keys = {plain(Key::escape)},
       .sheet = "Release the cell, end the animation, close a dialog, stop presenting, leave a lesson",
       .why_not = unless([](const Situation& now) { return released(now).has_value(); }, "nothing is pinned"),
       .command = [](const Situation& now) { return Asked{*released(now)}; }});
}

namespace {

std::size_t n_tokens(const Situation& s) {
  return s.pending.model.n_tokens();
}

/// Returns the why_not of the next (+1) or previous (−1) token in decoding.
std::function<std::string(const Situation&)> beyond_token(int by) {
  return [by](const Situation& s) -> std::string {
    if (const std::string why = why_not_decoded(s.pending.model); !why.empty()) return why;
    const auto& now = s.pending.look.positions.decoded;
    if (by > 0) return now && *now + 1 >= n_tokens(s) ? "this is the last token" : "";
    return !now ? "no decoding is shown" : *now == 0 ? "this is the first token" : "";
  };
}

}  // namespace

void add_decoding(Rows& rows) {
  constexpr const char* menu = "View/Decoding";
  for (const int by : {1, -1})
    rows.push_back({.id = by > 0 ? "decode/on" : "decode/back",
                    .title = by > 0 ? "Generate token" : "Remove last token",
                    .menu = menu,
                    .group = 1,
                    .about = by > 0 ? "Shows what a KV cache keeps and what is new, token by token" : "",
                    .keys = {by > 0 ? plain(Key::j) : shift(Key::j)},
                    .here = outside_editor,
                    .sheet = "Decoding: next, previous token",
                    .why_not = beyond_token(by),
                    .command = [by](const Situation& now) {
                      return Asked{StepDecoding{n_tokens(now), by}};
                    }});
  rows.push_back(
      {.id = "decode/close",
       .title = "All queries at once",
       .menu = menu,
       .group = 1,
       .why_not = unless([](const Situation& s) { return s.pending.look.positions.decoded.has_value(); },
                         "no decoding is shown"),
       .command = always(set<&PositionsLook::decoded>(std::nullopt))});
}

}  // namespace app::rows
