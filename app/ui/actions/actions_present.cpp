#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>

#include "app/session/navigation.hpp"
#include "app/ui/actions/action_rows.hpp"

namespace app::rows {

namespace {

constexpr const char* animation_menu = "View/Animation";

bool is_presenting(const Pending& view) {
  return view.selection.presentation.on;
}

std::size_t n_animation_steps(const ActionContext& s) {
  return s.displayed.selection.pinned ? animated_cells(s.displayed, *s.displayed.selection.pinned).size() : 0;
}

/// Returns why operands cannot be animated, or "".
std::string animation_disabled_reason(const ActionContext& s) {
  if (s.settings.reduce_motion) return "motion is reduced";
  if (!s.displayed.selection.pinned) return "no cell is pinned";
  return n_animation_steps(s) > 0 ? "" : "the pinned value is not computed from others";
}

CommandList play(const ActionContext& s) {
  return {PlayAnimation{n_animation_steps(s)}};
}

void add_operand_animation(ActionRows& rows) {
  add(rows, "flight/play", "Animate operands", animation_menu, 1)
      .about("The operands of the pinned value move to its cell, stage by stage")
      .keys(shift(Key::space))
      .keys_apply(outside_editor)
      .sheet_text("Animate the operands of the pinned value, or pause")
      .disabled_reason(animation_disabled_reason)
      .command(play);
  add(rows, "present/play", "Play or stop", "")
      .keys(plain(Key::space))
      .keys_apply(is_presenting)
      .sheet_text("Presenting: animate the operands, or pause")
      .disabled_reason([](const ActionContext& now) {
        return is_presenting(now.pending) ? animation_disabled_reason(now) : "only when presenting";
      })
      .command(play);
  for (const int by : {-1, 1})
    add(rows, by < 0 ? "flight/back" : "flight/on", by < 0 ? "Previous step" : "Next step", animation_menu, 1)
        .keys(ctrl(by < 0 ? Key::left : Key::right))
        .keys_apply(outside_editor)
        .sheet_text("Operand animation: previous, next step")
        .disabled_reason(animation_disabled_reason)
        .command([by](const ActionContext& now) {
          return StepAnimation{by, n_animation_steps(now)};
        });
  for (const int percent : {25, 50, 100, 200, 400}) {
    const float wanted = static_cast<float>(percent) / 100;
    add(rows, "flight/speed/" + std::to_string(percent), fmt::format("Speed {} %", percent), animation_menu,
        1, 1)
        .does(set<&Settings::animation_speed>(wanted))
        .checked([wanted](const ActionContext& now) {
          return std::fabs(now.settings.animation_speed - wanted) < 0.01f;
        });
  }
  add(rows, "view/reduce_motion", "Reduce motion", "File/Preferences", 1, 2)
      .about("Turns animations and flashes off; changed cells keep a thin outline")
      .command([](const ActionContext& now) {
        return CommandList{set<&Settings::reduce_motion>(!now.settings.reduce_motion),
                           set<&Presentation::operand_animation>(std::nullopt)};
      })
      .checked([](const ActionContext& now) { return now.settings.reduce_motion; });
}

}  // namespace

void add_presenting(ActionRows& rows) {
  add(rows, "view/present", "Present", "View", 1)
      .about("Shows the view large and without side panels; ← and → change the stage or step")
      .keys(plain(Key::f5))
      .sheet_text("Present, or return to the panels")
      .command([](const ActionContext& now) { return Present{!now.pending.selection.presentation.on}; })
      .checked([](const ActionContext& now) { return now.pending.selection.presentation.on; });
  add(rows, "view/full_screen", "Full screen", "View", 1)
      .keys(plain(Key::f11))
      .command([](const ActionContext& now) {
        return set<&Presentation::full_screen>(!now.pending.selection.presentation.full_screen);
      })
      .checked([](const ActionContext& now) { return now.pending.selection.presentation.full_screen; });
  add_operand_animation(rows);
}

namespace {

constexpr const char* navigation_menu = "View/Move selection";

struct CellMove {
  const char* id;
  const char* title;
  Key key;
  int down, right;
};
constexpr std::array cell_moves{CellMove{"cell/above", "Cell above", Key::up, -1, 0},
                                CellMove{"cell/below", "Cell below", Key::down, 1, 0},
                                CellMove{"cell/left", "Cell left", Key::left, 0, -1},
                                CellMove{"cell/right", "Cell right", Key::right, 0, 1}};

/// Returns the neighbor of the pinned cell, or the first cell when none is pinned; nothing at the edge.
std::optional<std::pair<CellRef, MatrixShape>> neighbor_cell(const ActionContext& s,
                                                             const CellMove& cell_move) {
  const auto& stage = core::attention::info(active_stage(s));
  const core::attention::StageMatrix& numbers = s.displayed.trace.at(stage.stage, s.displayed.look.head);
  const MatrixShape shape{numbers.n_rows(), numbers.n_cols()};
  CellRef cell{stage.stage, stage.per_head ? s.displayed.look.head : 0, 0, 0};
  const auto moved = [](std::size_t from, int by, std::size_t count) {
    return by < 0 ? from - (from > 0) : by > 0 ? std::min<std::size_t>(from + 1, count - 1) : from;
  };
  if (s.displayed.selection.pinned) {
    cell.row = moved(s.displayed.selection.pinned->row, cell_move.down, shape.first);
    cell.column = moved(s.displayed.selection.pinned->column, cell_move.right, shape.second);
  }
  if (s.displayed.selection.pinned == cell) return std::nullopt;
  return std::pair{cell, shape};
}

void add_cell_moves(ActionRows& rows) {
  for (const CellMove& cell_move : cell_moves)
    add(rows, cell_move.id, cell_move.title, navigation_menu, 5)
        .keys(shift(cell_move.key))
        .keys_apply(outside_editor)
        .sheet_text("Move the pinned cell")
        .only_if([&cell_move](const ActionContext& now) { return neighbor_cell(now, cell_move).has_value(); },
                 "the pinned cell is at the edge")
        .command([&cell_move](const ActionContext& now) {
          const auto [cell, shape] = *neighbor_cell(now, cell_move);
          return CommandList{PinCell{cell}, ScrollToCell{shape, cell.row, cell.column}};
        });
}

/// Returns the cell at the same row and column, clamped, in the previous (−1) or next (+1) shown stage.
std::optional<CellRef> cell_in_neighbor_stage(const ActionContext& s, int by) {
  const auto all = core::attention::stages();
  const bool of_heads = s.pending.selection.presentation.on && s.displayed.look.tab == Tab::heads;
  auto at = static_cast<std::ptrdiff_t>(of_heads ? s.displayed.look.heads_stage : active_stage(s)) + by;
  const auto count = static_cast<std::ptrdiff_t>(all.size());
  const auto shown = [&](std::ptrdiff_t k) {
    const auto& stage = all[static_cast<std::size_t>(k)];
    return s.displayed.has(stage.stage) && !s.displayed.look.folded.contains(stage.stage);
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

/// Returns why there is no previous (−1) or next (+1) shown stage, or "".
std::string why_no_neighbor_stage(const ActionContext& s, int by) {
  if (cell_in_neighbor_stage(s, by)) return "";
  return by < 0 ? "this is the first stage" : "this is the last stage";
}

bool is_presenting_stages(const Pending& view) {
  return view.selection.presentation.on && !view.selection.lesson && !view.selection.cursor;
}

/// Adds plain arrow keys that change the presented stage, as they change the step of a lesson.
void add_presented_stages(ActionRows& rows) {
  for (const int by : {-1, 1})
    add(rows, by < 0 ? "present/back" : "present/next",
        by < 0 ? "Present the previous stage" : "Present the next stage", "")
        .keys(plain(by < 0 ? Key::left : Key::right))
        .keys_apply(is_presenting_stages)
        .sheet_text("Presenting: previous, next stage")
        .disabled_reason([by](const ActionContext& now) -> std::string {
          if (!is_presenting_stages(now.pending)) return "only when presenting";
          const Tab tab = now.displayed.look.tab;
          if (tab != Tab::stages && tab != Tab::heads) return "only in Stages and Heads";
          return why_no_neighbor_stage(now, by);
        })
        .command([by](const ActionContext& now) {
          const CellRef cell = *cell_in_neighbor_stage(now, by);
          if (now.displayed.look.tab == Tab::heads) return CommandList{set<&Look::heads_stage>(cell.stage)};
          return CommandList{set<&Presentation::operand_animation>(std::nullopt), PinCell{cell}};
        });
}

void add_neighbor_stages(ActionRows& rows) {
  for (const int by : {-1, 1})
    add(rows, by < 0 ? "cell/stage_before" : "cell/stage_after", by < 0 ? "Previous stage" : "Next stage",
        navigation_menu, 5, 1)
        .keys(shift(by < 0 ? Key::page_up : Key::page_down))
        .keys_apply(outside_editor)
        .sheet_text("The same cell in the previous, next stage")
        .key_text("Shift+Page up, down")
        .disabled_reason([by](const ActionContext& now) -> std::string {
          if (now.displayed.look.tab != Tab::stages) return "only in Stages";
          return why_no_neighbor_stage(now, by);
        })
        .command([by](const ActionContext& now) {
          const CellRef cell = *cell_in_neighbor_stage(now, by);
          CommandList command_list{PinCell{cell}};
          if (now.pending.look.large) command_list.push_back(set<&Look::large>(cell.stage));
          return command_list;
        });
}

/// Pins the query above or below the pinned one in the token view; the first press pins an end.
CommandList move_query(const ActionContext& s, bool down) {
  const std::size_t last = s.pending.model.n_tokens() - 1;
  const auto& pinned = s.pending.look.tokens.pinned_query;
  const std::size_t next = !pinned ? (down ? 0 : last)
                           : down  ? std::min(*pinned + 1, last)
                                   : *pinned - (*pinned > 0);
  return CommandList{set<&TokensLook::pinned_query>(next), set<&TokensLook::scrolls_to_query>(true)};
}

void add_query_moves(ActionRows& rows) {
  for (const bool down : {false, true})
    add(rows, down ? "query/below" : "query/above", down ? "Query below" : "Query above", navigation_menu, 5,
        2)
        .keys(plain(down ? Key::down : Key::up))
        .keys_apply(in_tokens)
        .sheet_text("In Tokens: pin the query above, below")
        .only_if([](const ActionContext& now) { return now.displayed.look.tab == Tab::tokens; },
                 "only in Tokens")
        .command([down](const ActionContext& now) { return move_query(now, down); });
}

/// Returns the command of the first thing that Esc would release, or nothing.
std::optional<Command> release_command(const ActionContext& s) {
  const Pending& v = s.pending;
  if (s.forms.start_page) return set<&Forms::start_page>(false);
  if (v.selection.presentation.operand_animation) return set<&Presentation::operand_animation>(std::nullopt);
  if (v.selection.presentation.on) return set<&Presentation::on>(false);
  if (v.selection.cursor) return set<&Selection::cursor>(std::nullopt);
  if (v.selection.tour) return LeaveTour{};
  if (v.look.tab == Tab::layers && v.layers && v.layers->addition)
    return set<&LayersLook::addition>(std::nullopt);
  if (v.look.tab == Tab::layers && v.layers && v.layers->token && !v.selection.lesson)
    return set<&LayersLook::token>(std::nullopt);
  if ((v.look.tab == Tab::tokens || v.look.tab == Tab::layers) && v.look.tokens.pinned_query)
    return set<&TokensLook::pinned_query>(std::nullopt);
  if (v.selection.pinned) return UnpinCell{};
  if (v.look.gradient.of) return ShowGradient{};
  if (v.look.tab == Tab::stages && v.look.large) return set<&Look::large>(std::nullopt);
  if (v.look.tab == Tab::laboratory) return set<&Look::tab>(Tab::stages);
  if (v.selection.lesson) return LeaveLesson{};
  return std::nullopt;
}

std::size_t n_tokens(const ActionContext& s) {
  return s.pending.model.n_tokens();
}

/// Returns the disabled_reason of the next (+1) or previous (−1) token in decoding.
std::function<std::string(const ActionContext&)> token_step_disabled_reason(int by) {
  return [by](const ActionContext& s) -> std::string {
    if (const std::string why = decoding_problem(s.pending.model); !why.empty()) return why;
    const auto& now = s.pending.look.positions.decoded;
    if (by > 0) return now && *now + 1 >= n_tokens(s) ? "this is the last token" : "";
    return !now ? "no decoding is shown" : *now == 0 ? "this is the first token" : "";
  };
}

}  // namespace

void add_navigation(ActionRows& rows, const ActionContext&) {
  add_cell_moves(rows);
  add_neighbor_stages(rows);
  add_presented_stages(rows);
  add_query_moves(rows);
  add(rows, "cell/back", "Back to the previous cell", navigation_menu, 5, 3)
      .keys(plain(Key::backspace))
      .keys_apply(outside_editor)
      .sheet_text("Back to the cell whose operand you followed")
      .only_if(
          [](const ActionContext& now) {
            return !now.pending.selection.trail.empty() ||
                   (now.pending.layers && !now.pending.layers->path.empty());
          },
          "no operand has been followed")
      .command([](const ActionContext& now) -> CommandList {
        if (!now.pending.selection.trail.empty()) return {GoBack{}};
        return commands_back(*now.pending.layers, now.pending.layers->path.size() - 1);
      });
  add(rows, "cell/release", "Release", navigation_menu, 5, 3)
      .keys(plain(Key::escape))
      .sheet_text(
          "Release the cell, end gradient or animation, close a dialog, stop presenting, leave a lesson")
      .only_if([](const ActionContext& now) { return release_command(now).has_value(); }, "nothing is pinned")
      .command([](const ActionContext& now) { return *release_command(now); });
}

void add_decoding(ActionRows& rows) {
  constexpr const char* menu = "View/Decoding";
  for (const int by : {1, -1})
    add(rows, by > 0 ? "decode/on" : "decode/back", by > 0 ? "Generate token" : "Remove last token", menu, 1)
        .about(by > 0 ? "Shows what a KV cache keeps and what is new, token by token" : "")
        .keys(by > 0 ? plain(Key::j) : shift(Key::j))
        .keys_apply(outside_editor)
        .sheet_text("Decoding: next, previous token")
        .disabled_reason(token_step_disabled_reason(by))
        .command([by](const ActionContext& now) {
          return StepDecoding{n_tokens(now), by};
        });
  add(rows, "decode/close", "All queries at once", menu, 1)
      .only_if([](const ActionContext& s) { return s.pending.look.positions.decoded.has_value(); },
               "no decoding is shown")
      .does(set<&PositionsLook::decoded>(std::nullopt));
}

}  // namespace app::rows
