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

void add_color_maps(ActionRows& rows, std::span<const NamedMap> maps, ColorMap ColorChoice::*field,
                    int part) {
  for (const NamedMap& map : maps)
    add(rows, std::string("map/") + map.name, map.name, "View/Colors", 4, part)
        .does(field == &ColorChoice::sequential ? set<&ColorChoice::sequential>(map.map)
                                                : set<&ColorChoice::diverging>(map.map))
        .checked(
            [field, m = map.map](const ActionContext& now) { return now.displayed.look.colors.*field == m; });
}

}  // namespace

void add_colors(ActionRows& rows, const ActionContext&) {
  for (const RangeRow& range : ranges)
    add(rows, range.id, range.title, "View/Colors", 4, 0)
        .does(set<&ColorChoice::range>(range.rule), set<&ColorChoice::locked>(std::nullopt))
        .checked([rule = range.rule](const ActionContext& now) {
          return now.displayed.look.colors.range == rule;
        });
  add(rows, "colours/logarithmic", "Logarithmic", "View/Colors", 4, 1)
      .command([](const ActionContext& now) {
        return CommandList{set<&ColorChoice::logarithmic>(!now.pending.look.colors.logarithmic),
                           set<&ColorChoice::locked>(std::nullopt)};
      })
      .checked([](const ActionContext& now) { return now.displayed.look.colors.logarithmic; });
  add(rows, "colours/lock", "Lock range", "View/Colors", 4, 1)
      .only_if([](const ActionContext& now) { return now.displayed.look.colors.locked || now.color_limits; },
               "no colors are shown")
      .command([](const ActionContext& now) {
        if (now.displayed.look.colors.locked) return CommandList{set<&ColorChoice::locked>(std::nullopt)};
        return CommandList{set<&ColorChoice::locked>(now.color_limits())};
      })
      .checked([](const ActionContext& now) { return now.displayed.look.colors.locked.has_value(); });

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
    add(rows, row.id, row.title, "View")
        .keys(ctrl(row.key))
        .sheet_text("Stages, Heads, Tokens, Compare, laboratory")
        .does(set<&Forms::start_page>(false), set<&Look::tab>(row.tab))
        .checked([tab = row.tab](const ActionContext& now) { return now.displayed.look.tab == tab; });
}

/// Adds the themes; dark and light share a key that toggles them.
void add_themes(ActionRows& rows, const ActionContext& s) {
  for (const bool dark : {true, false}) {
    add(rows, dark ? "theme/dark" : "theme/light", dark ? "Dark" : "Light", "File/Preferences/Theme", 2)
        .sheet_text("Dark or light")
        .does(set<&Settings::dark>(dark))
        .checked([dark](const ActionContext& now) { return now.settings.dark == dark; });
    if (s.settings.dark != dark) rows.back().keys = {plain(Key::t)};
  }
}

/// Adds a row for each size, in percent.
template <std::size_t n>
void add_sizes(ActionRows& rows, const char* id, const char* menu, const std::array<int, n>& choices,
               float Settings::*size) {
  for (const int percent : choices) {
    const float wanted = static_cast<float>(percent) / 100;
    add(rows, id + std::to_string(percent), std::to_string(percent) + " %", menu, 2)
        .does(size == &Settings::scale ? set<&Settings::scale>(wanted) : set<&Settings::text_size>(wanted))
        .checked([size, wanted](const ActionContext& now) {
          return std::fabs(now.settings.*size - wanted) < 0.01f;
        });
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
    add(rows, in ? "zoom/in" : "zoom/out", in ? "Zoom in" : "Zoom out", "View/Zoom", 5)
        .keys(plain(in ? Key::plus : Key::minus))
        .keys_apply(outside_editor)
        .sheet_text("Zoom in, out; or Ctrl and the wheel over a map")
        .command([in](const ActionContext& now) { return zoom_by(now, in ? 1 / step : step); });
  add(rows, "zoom/fit", "Fit all cells", "View/Zoom", 5)
      .keys(plain(Key::f))
      .only_if([](const ActionContext& now) { return !now.displayed.look.zoomed.empty(); },
               "all cells are shown")
      .does(set<&Look::zoomed>({}));
}

std::set<Stage> all_stages() {
  std::set<Stage> all;
  for (const auto& stage : core::attention::stages()) all.insert(stage.stage);
  return all;
}

void add_stage_display(ActionRows& rows, const ActionContext& s) {
  add(rows, "stages/alone",
      s.displayed.look.tab == Tab::stages && s.displayed.look.large ? "Back to all stages" : "Maximize stage",
      "View", 5)
      .about("The stage of the pinned cell, or the one under the mouse")
      .keys(plain(Key::l))
      .sheet_text("Show one stage alone, or all; or double-click")
      .command([](const ActionContext& now) {
        const bool points = now.displayed.selection.hovered && !now.displayed.selection.pinned;
        const Stage stage = points ? now.displayed.selection.hovered->stage : active_stage(now);
        const Look& look = now.pending.look;
        return CommandList{
            set<&Look::large>(look.tab == Tab::stages && look.large ? std::nullopt : std::optional(stage)),
            set<&Look::tab>(Tab::stages)};
      });
  add(rows, "stages/gutters", "Row sums and entropy", "View", 5)
      .keys(plain(Key::g))
      .sheet_text("Row sums and entropy next to the stages")
      .command([](const ActionContext& now) { return set<&Look::gutters>(!now.pending.look.gutters); })
      .checked([](const ActionContext& now) { return now.displayed.look.gutters; });
  add(rows, "stages/pytorch_numbers", "Numbers as PyTorch prints them", "View", 5)
      .about("Four decimals in every cell, zeros too, so that a map can be read beside print(tensor)")
      .command([](const ActionContext& now) {
        return set<&Settings::pytorch_numbers>(!now.settings.pytorch_numbers);
      })
      .checked([](const ActionContext& now) { return now.settings.pytorch_numbers; });
  add(rows, "stages/code", "Code lines", "View", 5)
      .about("The line of PyTorch below every stage; a click on a formula shows one")
      .command([](const ActionContext& now) {
        const std::set<Stage> all = all_stages();
        return set<&Look::code_lines>(now.pending.look.code_lines == all ? std::set<Stage>() : all);
      })
      .checked([](const ActionContext& now) { return now.displayed.look.code_lines == all_stages(); });
}

/// Adds the RoPE view, which is displayed below the rotated queries.
void add_positions(ActionRows& rows) {
  add(rows, "stages/positions", "RoPE view", "View", 5)
      .about("Shows the rotary pairs of a query and a key as arrows, and the score at every distance")
      .only_if([](const ActionContext& now) { return now.displayed.has(Stage::rotated_queries); },
               "the model has no rotary embedding")
      .does(set<&Look::large>(Stage::rotated_queries), set<&Look::tab>(Tab::stages));
}

/// Adds a row for each stage of the model, or each one that heads have.
template <class Finish>
void add_each(ActionRows& rows, const ActionContext& s, const char* id, const char* menu, bool of_heads,
              Finish finish) {
  for (const auto& stage : core::attention::stages())
    if (s.displayed.has(stage.stage) && (stage.per_head || !of_heads))
      finish(add(rows, std::string(id) + stage.name, stage.title, menu, 5), stage.stage);
}

}  // namespace

Stage active_stage(const ActionContext& s) {
  if (s.displayed.selection.pinned) return s.displayed.selection.pinned->stage;
  if (s.displayed.look.tab == Tab::heads) return s.displayed.look.heads_stage;
  return s.displayed.look.large.value_or(Stage::weights);
}

void add_stages(ActionRows& rows, const ActionContext& s) {
  add_zoom(rows);
  add_stage_display(rows, s);
  add_positions(rows);
  add_each(rows, s, "large/", "View/Maximize", false, [](ActionRow row, Stage stage) {
    row.does(set<&Look::large>(stage), set<&Look::tab>(Tab::stages))
        .checked([stage](const ActionContext& now) { return now.displayed.look.large == stage; });
  });
  add_each(rows, s, "of_heads/", "View/Stage in Heads view", true, [](ActionRow row, Stage stage) {
    row.does(set<&Look::heads_stage>(stage), set<&Look::tab>(Tab::heads))
        .checked([stage](const ActionContext& now) {
          return now.displayed.look.tab == Tab::heads && now.displayed.look.heads_stage == stage;
        });
  });
  add_each(rows, s, "shown/", "View/Visible stages", false, [](ActionRow row, Stage stage) {
    row.command([stage](const ActionContext& now) {
         return FoldStage{stage, !now.pending.look.folded.contains(stage)};
       })
        .checked([stage](const ActionContext& now) { return !now.displayed.look.folded.contains(stage); });
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

void add_large(ActionRows& rows, const ActionContext& s, Stage stage) {
  const bool is_large = s.displayed.look.tab == Tab::stages && s.displayed.look.large == stage;
  add(rows, "stage/large", is_large ? "Back to all stages" : "Maximize", stage_menu)
      .about("Click the title or double-click its cells for the same")
      .does(set<&Look::large>(is_large ? std::nullopt : std::optional(stage)), set<&Look::tab>(Tab::stages));
}

/// Adds the action that presents a stage; it releases a pinned cell, if its stage would be shown instead.
void add_present(ActionRows& rows, Stage stage, std::size_t head) {
  add(rows, "stage/present", "Present", stage_menu)
      .about("Shows this stage large for an audience (F5)")
      .command([stage, head](const ActionContext& now) {
        const auto& pinned = now.pending.selection.pinned;
        CommandList command_list;
        if (pinned && pinned->stage != stage) command_list.push_back(set<&Selection::pinned>(std::nullopt));
        if (core::attention::info(stage).per_head) command_list.push_back(set<&Look::head>(head));
        command_list.push_back(now.pending.look.tab == Tab::heads ? set<&Look::heads_stage>(stage)
                                                                  : set<&Look::large>(stage));
        command_list.push_back(Present{true});
        return command_list;
      });
}

void add_fold(ActionRows& rows, Stage stage) {
  add(rows, "stage/fold", "Hide stage", stage_menu)
      .about("The line below the stages brings it back")
      .only_if(
          [](const ActionContext& now) {
            return now.displayed.look.tab == Tab::stages && !now.displayed.look.large;
          },
          "only in the view of all stages")
      .does(FoldStage{stage});
}

void add_override(ActionRows& rows, Stage stage) {
  add(rows, "stage/give", "Override stage…", stage_menu, 2)
      .about("Replaces the computed numbers by pasted ones or those of a file, or computes them again")
      .only_if([stage](const ActionContext&) { return core::attention::can_be_given(stage); },
               "this stage is edited or switched elsewhere")
      .does(set<&Forms::overridden_stage>(stage), ShowDialog{Dialog::override_stage});
}

void add_export(ActionRows& rows, Stage stage, std::size_t head) {
  add(rows, "stage/export", "Export this…", stage_menu, 2)
      .about("Writes its numbers or a figure to a file")
      .does(set<&ExportChoice::from>(std::pair(stage, head)), set<&ExportChoice::what>(ExportScope::matrix),
            ShowDialog{Dialog::export_files});
}

}  // namespace

void add_stage_menu(ActionRows& rows, const ActionContext& s, Stage stage, std::size_t head) {
  const std::vector<Action> all = actions(s);
  add_large(rows, s, stage);
  add_present(rows, stage, head);
  add_fold(rows, stage);
  add_existing_action(rows, all, "zoom/fit", 0);
  for (const char* id : {"stages/gutters", "colours/logarithmic", "colours/lock"})
    add_existing_action(rows, all, id, 1);
  add_override(rows, stage);
  add_matrix_copy_actions(rows, s, std::string(stage_menu) + "/Copy as", {stage, head, 0, 0});
  add_export(rows, stage, head);
}

}  // namespace app::rows
