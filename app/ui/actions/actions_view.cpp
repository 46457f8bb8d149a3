#include <array>
#include <cmath>
#include <span>

#include "app/session/navigation.hpp"
#include "app/ui/actions/action_rows.hpp"

namespace app::rows {

namespace {

using core::color::ColorMap;
using core::color::NamedMap;

struct RangeRow {
  ColorRangeRule rule;
  const char* id;
  const char* title;
};
constexpr std::array ranges{
    RangeRow{ColorRangeRule::matrix, "colours/matrix", "By matrix"},
    RangeRow{ColorRangeRule::stage, "colours/stage", "Per stage (all heads)"},
    RangeRow{ColorRangeRule::all_heads, "colours/all", "One for all stages and heads"},
    RangeRow{ColorRangeRule::typed, "colours/typed", "Manual range"}};

Action color_action(const char* id, const char* title, int part) {
  return {.id = id, .title = title, .menu = "View/Colors", .group = 4, .part = part};
}

void add_color_maps(ActionRows& rows, std::span<const NamedMap> maps, ColorMap ColorChoice::*field,
                    int part) {
  for (const NamedMap& map : maps) {
    Action row = color_action("", map.name, part);
    row.id = std::string("map/") + map.name;
    row.command = always(field == &ColorChoice::sequential ? set<&ColorChoice::sequential>(map.map)
                                                           : set<&ColorChoice::diverging>(map.map));
    row.checked = [field, m = map.map](const ActionContext& now) {
      return now.displayed.look.colors.*field == m;
    };
    rows.push_back(std::move(row));
  }
}

}  // namespace

void add_colors(ActionRows& rows, const ActionContext&) {
  for (const RangeRow& range : ranges) {
    Action row = color_action(range.id, range.title, 0);
    row.command = always(set<&ColorChoice::range>(range.rule), set<&ColorChoice::locked>(std::nullopt));
    row.checked = [rule = range.rule](const ActionContext& now) {
      return now.displayed.look.colors.range == rule;
    };
    rows.push_back(std::move(row));
  }
  Action logarithmic = color_action("colours/logarithmic", "Logarithmic", 1);
  logarithmic.command = [](const ActionContext& now) {
    return CommandList{set<&ColorChoice::logarithmic>(!now.pending.look.colors.logarithmic),
                       set<&ColorChoice::locked>(std::nullopt)};
  };
  logarithmic.checked = [](const ActionContext& now) { return now.displayed.look.colors.logarithmic; };
  rows.push_back(std::move(logarithmic));

  Action lock = color_action("colours/lock", "Lock range", 1);
  lock.disabled_reason =
      unless([](const ActionContext& now) { return now.displayed.look.colors.locked || now.color_limits; },
             "no colors are shown");
  lock.command = [](const ActionContext& now) {
    if (now.displayed.look.colors.locked) return CommandList{set<&ColorChoice::locked>(std::nullopt)};
    return CommandList{set<&ColorChoice::locked>(now.color_limits())};
  };
  lock.checked = [](const ActionContext& now) { return now.displayed.look.colors.locked.has_value(); };
  rows.push_back(std::move(lock));

  add_color_maps(rows, core::color::sequential_maps(), &ColorChoice::sequential, 2);
  add_color_maps(rows, core::color::diverging_maps(), &ColorChoice::diverging, 3);
}

namespace {

struct TabAction {
  Tab tab;
  const char* id;
  const char* title;
  Key key;
};
constexpr std::array tabs{TabAction{Tab::stages, "tab/stages", "Stages", Key::digit_1},
                          TabAction{Tab::heads, "tab/heads", "Heads", Key::digit_2},
                          TabAction{Tab::tokens, "tab/tokens", "Tokens", Key::digit_3},
                          TabAction{Tab::compare, "tab/compare", "Compare", Key::digit_4},
                          TabAction{Tab::laboratory, "tab/laboratory", "Dropout laboratory", Key::digit_5}};

void add_tabs(ActionRows& rows) {
  for (const TabAction& row : tabs)
    rows.push_back(
        {.id = row.id,
         .title = row.title,
         .menu = "View",
         .keys = {ctrl(row.key)},
         .sheet_text = "Stages, Heads, Tokens, Compare, laboratory",
         .command = always(set<&Forms::start_page>(false), set<&Look::tab>(row.tab)),
         .checked = [tab = row.tab](const ActionContext& now) { return now.displayed.look.tab == tab; }});
}

/// Adds the themes; dark and light share a key that toggles them.
void add_themes(ActionRows& rows, const ActionContext& s) {
  for (const bool dark : {true, false}) {
    rows.push_back({.id = dark ? "theme/dark" : "theme/light",
                    .title = dark ? "Dark" : "Light",
                    .menu = "File/Preferences/Theme",
                    .group = 2,
                    .sheet_text = "Dark or light",
                    .command = always(set<&Settings::dark>(dark)),
                    .checked = [dark](const ActionContext& now) { return now.settings.dark == dark; }});
    if (s.settings.dark != dark) rows.back().keys = {plain(Key::t)};
  }
}

/// Adds a row for each size, in percent.
template <std::size_t n>
void add_sizes(ActionRows& rows, const char* id, const char* menu, const std::array<int, n>& choices,
               float Settings::*size) {
  for (const int percent : choices) {
    const float wanted = static_cast<float>(percent) / 100;
    rows.push_back({.id = id + std::to_string(percent),
                    .title = std::to_string(percent) + " %",
                    .menu = menu,
                    .group = 2,
                    .command = always(size == &Settings::scale ? set<&Settings::scale>(wanted)
                                                               : set<&Settings::text_size>(wanted)),
                    .checked = [size, wanted](const ActionContext& now) {
                      return std::fabs(now.settings.*size - wanted) < 0.01f;
                    }});
  }
}

}  // namespace

std::vector<Action> view_actions(const ActionContext& s) {
  ActionRows rows;
  add_layers_tab(rows, s);
  add_tabs(rows);
  add_learning(rows, s);
  add_presenting(rows);
  add_decoding(rows);
  add_themes(rows, s);
  add_sizes(rows, "scale/", "File/Preferences/Scale", std::array{100, 125, 150, 200}, &Settings::scale);
  add_sizes(rows, "text_size/", "File/Preferences/Text size", std::array{90, 100, 110, 125},
            &Settings::text_size);
  add_heads(rows, s);
  add_colors(rows, s);
  add_stages(rows, s);
  add_gradients(rows, s);
  add_navigation(rows, s);
  return rows;
}

namespace {

/// Zooms around the pinned cell, or around the middle; with nothing pinned, zooms token × token matrices.
CommandList zoom_by(const ActionContext& s, double factor) {
  const auto& stage = core::attention::info(s.displayed.selection.pinned ? s.displayed.selection.pinned->stage
                                                                         : Stage::weights);
  const core::attention::StageMatrix& numbers = s.displayed.trace.at(stage.stage, s.displayed.look.head);
  const MatrixShape shape{numbers.n_rows(), numbers.n_cols()};
  const CellWindow part = displayed_window(s.displayed.look, shape);
  const double row = s.displayed.selection.pinned
                         ? static_cast<double>(s.displayed.selection.pinned->row) + 0.5
                         : (part.top + part.bottom) / 2;
  const double column = s.displayed.selection.pinned
                            ? static_cast<double>(s.displayed.selection.pinned->column) + 0.5
                            : (part.left + part.right) / 2;
  return {Zoom{shape, row, column, factor}};
}

void add_zoom(ActionRows& rows) {
  constexpr double step = 1.5;
  for (const bool in : {true, false})
    rows.push_back(
        {.id = in ? "zoom/in" : "zoom/out",
         .title = in ? "Zoom in" : "Zoom out",
         .menu = "View/Zoom",
         .group = 5,
         .keys = {plain(in ? Key::plus : Key::minus)},
         .keys_apply = outside_editor,
         .sheet_text = "Zoom in, out; or Ctrl and the wheel over a map",
         .command = [in](const ActionContext& now) { return zoom_by(now, in ? 1 / step : step); }});
  rows.push_back(
      {.id = "zoom/fit",
       .title = "Fit all cells",
       .menu = "View/Zoom",
       .group = 5,
       .keys = {plain(Key::f)},
       .disabled_reason = unless([](const ActionContext& now) { return !now.displayed.look.zoomed.empty(); },
                                 "all cells are shown"),
       .command = always(set<&Look::zoomed>({}))});
}

std::set<Stage> all_stages() {
  std::set<Stage> all;
  for (const auto& stage : core::attention::stages()) all.insert(stage.stage);
  return all;
}

void add_stage_display(ActionRows& rows, const ActionContext& s) {
  rows.push_back(
      {.id = "stages/alone",
       .title = s.displayed.look.tab == Tab::stages && s.displayed.look.large ? "Back to all stages"
                                                                              : "Maximize stage",
       .menu = "View",
       .group = 5,
       .about = "The stage of the pinned cell, or the one under the mouse",
       .keys = {plain(Key::l)},
       .sheet_text = "Show one stage alone, or all; or double-click",
       .command = [](const ActionContext& now) {
         const bool points = now.displayed.selection.hovered && !now.displayed.selection.pinned;
         const Stage stage = points ? now.displayed.selection.hovered->stage : active_stage(now);
         const Look& look = now.pending.look;
         return CommandList{
             set<&Look::large>(look.tab == Tab::stages && look.large ? std::nullopt : std::optional(stage)),
             set<&Look::tab>(Tab::stages)};
       }});
  rows.push_back({.id = "stages/gutters",
                  .title = "Row sums and entropy",
                  .menu = "View",
                  .group = 5,
                  .keys = {plain(Key::g)},
                  .sheet_text = "Row sums and entropy next to the stages",
                  .command =
                      [](const ActionContext& now) {
                        return CommandList{set<&Look::gutters>(!now.pending.look.gutters)};
                      },
                  .checked = [](const ActionContext& now) { return now.displayed.look.gutters; }});
  rows.push_back(
      {.id = "stages/pytorch_numbers",
       .title = "Numbers as PyTorch prints them",
       .menu = "View",
       .group = 5,
       .about = "Four decimals in every cell, zeros too, so that a map can be read beside print(tensor)",
       .command =
           [](const ActionContext& now) {
             return CommandList{set<&Settings::pytorch_numbers>(!now.settings.pytorch_numbers)};
           },
       .checked = [](const ActionContext& now) { return now.settings.pytorch_numbers; }});
  rows.push_back(
      {.id = "stages/code",
       .title = "Code lines",
       .menu = "View",
       .group = 5,
       .about = "The line of PyTorch below every stage; a click on a formula shows one",
       .command =
           [](const ActionContext& now) {
             const std::set<Stage> all = all_stages();
             return CommandList{
                 set<&Look::code_lines>(now.pending.look.code_lines == all ? std::set<Stage>() : all)};
           },
       .checked = [](const ActionContext& now) { return now.displayed.look.code_lines == all_stages(); }});
}

/// Adds the RoPE view, which is displayed below the rotated queries.
void add_positions(ActionRows& rows) {
  rows.push_back(
      {.id = "stages/positions",
       .title = "RoPE view",
       .menu = "View",
       .group = 5,
       .about = "Shows the rotary pairs of a query and a key as arrows, and the score at every distance",
       .disabled_reason =
           unless([](const ActionContext& now) { return now.displayed.has(Stage::rotated_queries); },
                  "the model has no rotary embedding"),
       .command = always(set<&Look::large>(Stage::rotated_queries), set<&Look::tab>(Tab::stages))});
}

/// Adds a row for each stage of the model for which finish() returns true.
template <class Finish>
void add_each(ActionRows& rows, const ActionContext& s, const char* id, const char* menu, Finish finish) {
  for (const auto& stage : core::attention::stages()) {
    if (!s.displayed.has(stage.stage)) continue;
    Action row{.id = std::string(id) + stage.name, .title = stage.title, .menu = menu, .group = 5};
    if (finish(row, stage)) rows.push_back(std::move(row));
  }
}

}  // namespace

Stage active_stage(const ActionContext& s) {
  if (s.displayed.selection.pinned) return s.displayed.selection.pinned->stage;
  if (s.displayed.look.tab == Tab::heads) return s.displayed.look.heads_stage;
  return s.displayed.look.large.value_or(Stage::weights);
}

void add_stages(ActionRows& rows, const ActionContext& s) {
  using core::attention::StageInfo;
  add_zoom(rows);
  add_stage_display(rows, s);
  add_positions(rows);
  add_each(rows, s, "large/", "View/Maximize", [](Action& row, const StageInfo& stage) {
    row.command = always(set<&Look::large>(stage.stage), set<&Look::tab>(Tab::stages));
    row.checked = [which = stage.stage](const ActionContext& now) {
      return now.displayed.look.large == which;
    };
    return true;
  });
  add_each(rows, s, "of_heads/", "View/Stage in Heads view", [](Action& row, const StageInfo& stage) {
    row.command = always(set<&Look::heads_stage>(stage.stage), set<&Look::tab>(Tab::heads));
    row.checked = [which = stage.stage](const ActionContext& now) {
      return now.displayed.look.tab == Tab::heads && now.displayed.look.heads_stage == which;
    };
    return stage.per_head;
  });
  add_each(rows, s, "shown/", "View/Visible stages", [](Action& row, const StageInfo& stage) {
    row.command = [which = stage.stage](const ActionContext& now) {
      return CommandList{FoldStage{which, !now.pending.look.folded.contains(which)}};
    };
    row.checked = [which = stage.stage](const ActionContext& now) {
      return !now.displayed.look.folded.contains(which);
    };
    return true;
  });
}

namespace {

constexpr const char* stage_menu = "Stage";

/// Adds an action of the table to the stage menu, if it exists.
void add_existing_action(ActionRows& rows, const std::vector<Action>& all, const char* id, int group) {
  const Action* found = find_action(all, id);
  if (!found) return;
  Action row = *found;
  row.menu = stage_menu, row.group = group;
  rows.push_back(std::move(row));
}

Action large_row(const ActionContext& s, Stage stage) {
  const bool is_large = s.displayed.look.tab == Tab::stages && s.displayed.look.large == stage;
  return {.id = "stage/large",
          .title = is_large ? "Back to all stages" : "Maximize",
          .menu = stage_menu,
          .about = "Click the title or double-click its cells for the same",
          .command = always(set<&Look::large>(is_large ? std::nullopt : std::optional(stage)),
                            set<&Look::tab>(Tab::stages))};
}

/// Returns the action that presents a stage; it releases a pinned cell, if its stage would be shown instead.
Action present_row(Stage stage, std::size_t head) {
  return {.id = "stage/present",
          .title = "Present",
          .menu = stage_menu,
          .about = "Shows this stage large for an audience (F5)",
          .command = [stage, head](const ActionContext& now) {
            const auto& pinned = now.pending.selection.pinned;
            CommandList command_list;
            if (pinned && pinned->stage != stage)
              command_list.push_back(set<&Selection::pinned>(std::nullopt));
            if (core::attention::info(stage).per_head) command_list.push_back(set<&Look::head>(head));
            command_list.push_back(now.pending.look.tab == Tab::heads ? set<&Look::heads_stage>(stage)
                                                                      : set<&Look::large>(stage));
            command_list.push_back(Present{true});
            return command_list;
          }};
}

Action fold_row(Stage stage) {
  return {.id = "stage/fold",
          .title = "Hide stage",
          .menu = stage_menu,
          .about = "The line below the stages brings it back",
          .disabled_reason = unless(
              [](const ActionContext& now) {
                return now.displayed.look.tab == Tab::stages && !now.displayed.look.large;
              },
              "only in the view of all stages"),
          .command = always(FoldStage{stage})};
}

Action override_row(Stage stage) {
  return {.id = "stage/give",
          .title = "Override stage…",
          .menu = stage_menu,
          .group = 2,
          .about = "Replaces the computed numbers by pasted ones or those of a file, or computes them again",
          .disabled_reason =
              unless([stage](const ActionContext&) { return core::attention::can_be_given(stage); },
                     "this stage is edited or switched elsewhere"),
          .command = [stage](const ActionContext&) {
            return CommandList{set<&Forms::overridden_stage>(stage), ShowDialog{Dialog::override_stage}};
          }};
}

Action export_row(Stage stage, std::size_t head) {
  return {.id = "stage/export",
          .title = "Export this…",
          .menu = stage_menu,
          .group = 2,
          .about = "Writes its numbers or a figure to a file",
          .command = [stage, head](const ActionContext&) {
            return CommandList{set<&ExportChoice::from>(std::pair(stage, head)),
                               set<&ExportChoice::what>(ExportScope::matrix),
                               ShowDialog{Dialog::export_files}};
          }};
}

}  // namespace

void add_stage_menu(ActionRows& rows, const ActionContext& s, Stage stage, std::size_t head) {
  const std::vector<Action> all = actions(s);
  rows.push_back(large_row(s, stage));
  rows.push_back(present_row(stage, head));
  rows.push_back(fold_row(stage));
  add_existing_action(rows, all, "zoom/fit", 0);
  for (const char* id : {"stages/gutters", "colours/logarithmic", "colours/lock"})
    add_existing_action(rows, all, id, 1);
  rows.push_back(override_row(stage));
  add_matrix_copy_actions(rows, s, std::string(stage_menu) + "/Copy as", {stage, head, 0, 0});
  rows.push_back(export_row(stage, head));
}

}  // namespace app::rows
