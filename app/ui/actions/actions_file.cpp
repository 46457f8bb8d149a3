#include <fmt/core.h>
#include <array>
#include <cctype>
#include <utility>

#include "app/session/exporting.hpp"
#include "app/session/lessons.hpp"
#include "app/session/live_patches.hpp"
#include "app/session/live_sources.hpp"
#include "app/session/model_title.hpp"
#include "app/session/navigation.hpp"
#include "app/ui/actions/action_rows.hpp"
#include "core/base/error.hpp"
#include "core/editing/presets.hpp"
#include "core/lessons/lessons.hpp"

namespace app::rows {

namespace {

namespace editing = core::editing;

/// Returns the submenu of File > New for a preset.
std::string preset_submenu(const core::editing::Preset& preset) {
  const std::string_view name = preset.name;
  if (name.starts_with("modern-")) return "Modern";
  return name.starts_with("0") || name.starts_with("chapter-") ? "Notebooks" : "Concepts";
}

void add_presets(ActionRows& rows) {
  for (const auto& preset : editing::presets()) {
    const bool is_default = &preset == &editing::default_preset();
    Action row{.id = std::string("new/") + preset.name,
               .title = preset.title,
               .menu = "File/New/" + preset_submenu(preset)};
    if (const std::string group = "Modern: "; row.title.starts_with(group))
      row.title =
          static_cast<char>(std::toupper(row.title[group.size()])) + row.title.substr(group.size() + 1);
    row.about = preset.about;
    row.shows_about = true;
    row.section = preset_submenu(preset);
    if (is_default) row.keys = {ctrl(Key::n), alt(Key::n)}, row.sheet_text = "New";
    row.command = always(LoadPreset{preset.name});
    rows.push_back(std::move(row));
  }
}

void add_recent(ActionRows& rows, const ActionContext& s) {
  for (std::size_t k = 0; k < s.document.recent.size(); ++k) {
    const auto& path = s.document.recent[k];
    rows.push_back({.id = "recent/" + std::to_string(k),
                    .title = path.filename().string(),
                    .menu = "File/Open recent",
                    .about = path.string(),
                    .command = always(OpenPath{path})});
  }
  if (s.document.recent.empty())
    rows.push_back(
        {.id = "recent/none",
         .title = "none yet",
         .menu = "File/Open recent",
         .disabled_reason = [](const ActionContext&) { return "no file has been opened or saved"; }});
}

/// Adds the whole models that are installed with the program.
void add_models(ActionRows& rows, const ActionContext& s) {
  for (const auto& path : s.forms.models)
    rows.push_back({.id = "model/" + path.filename().string(),
                    .title = model_title(path),
                    .menu = "File/New/Whole model",
                    .about = path.string(),
                    .command = always(OpenPath{.path = path})});
  if (s.forms.models.empty())
    rows.push_back({.id = "model/none",
                    .title = "none",
                    .menu = "File/New/Whole model",
                    .disabled_reason = [](const ActionContext&) {
                      return "no whole model is installed with the program";
                    }});
}

void add_layers(ActionRows& rows, const ActionContext& s) {
  for (std::size_t k = 0; k < s.document.layers.size(); ++k)
    rows.push_back({.id = "layer/" + std::to_string(k),
                    .title = s.document.layers[k].empty() ? std::to_string(k) : s.document.layers[k],
                    .menu = "File/Layer of this file",
                    .command = always(ImportLayer{k}),
                    .checked = [k](const ActionContext& now) { return now.document.layer == k; }});
}

}  // namespace

std::vector<Action> file_actions(const ActionContext& s) {
  ActionRows rows;
  add_presets(rows);
  add_learning_tasks(rows);
  rows.push_back(
      {.id = "file/start",
       .title = "Start page",
       .menu = "File",
       .about = "A small example, lessons, a whole model, one that learns, and recent files",
       .disabled_reason = unless([](const ActionContext& now) { return !now.pending.selection.lesson; },
                                 "a lesson is open: leave it with Esc"),
       .command = always(set<&Forms::start_page>(true))});
  rows.push_back({.id = "file/open",
                  .title = "Open…",
                  .menu = "File",
                  .keys = {ctrl(Key::o)},
                  .command = show_dialog(Dialog::open)});
  add_models(rows, s);
  rows.push_back({.id = "file/as_tensors",
                  .title = "Open tensors only…",
                  .menu = "File",
                  .about = "Opens one layer of this model's file as a checkpoint layer",
                  .disabled_reason = unless(
                      [](const ActionContext& now) {
                        return now.pending.full_model &&
                               !now.pending.full_model->model->description().is_attached;
                      },
                      "no whole model is open that was read from a file"),
                  .command = [](const ActionContext& now) {
                    return CommandList{OpenPath{.path = now.pending.full_model->model->description().file,
                                                .as_tensors = true}};
                  }});
  add_recent(rows, s);
  rows.push_back({.id = "file/choose",
                  .title = "Pick layer from file…",
                  .menu = "File",
                  .disabled_reason = unless([](const ActionContext& now) { return now.document.of_tensors; },
                                            "the model was not made of a file of tensors"),
                  .command = show_dialog(Dialog::import_tensors)});
  add_layers(rows, s);
  rows.push_back({.id = "file/save",
                  .title = "Save",
                  .menu = "File",
                  .group = 2,
                  .keys = {ctrl(Key::s)},
                  .command = always(SaveFile{})});
  rows.push_back({.id = "file/save_as",
                  .title = "Save as…",
                  .menu = "File",
                  .group = 2,
                  .keys = {ctrl_shift(Key::s)},
                  .sheet_text = "Save under another name",
                  .command = show_dialog(Dialog::save_as)});
  rows.push_back({.id = "file/link",
                  .title = "Copy link",
                  .menu = "File",
                  .group = 2,
                  .about = "A link that opens this preset, this step of a lesson, or a copy of this work",
                  .disabled_reason = unless([](const ActionContext& now) { return !now.pending.full_model; },
                                            "a link cannot carry a whole model"),
                  .command = always(CopyLink{})});
  rows.push_back(
      {.id = "file/export",
       .title = "Export…",
       .menu = "File",
       .group = 2,
       .about = "Writes numbers, a figure or a program",
       .keys = {ctrl(Key::e)},
       .sheet_text = "Export numbers, a figure or a program",
       .command = [](const ActionContext&) {
         return CommandList{set<&ExportChoice::from>(std::nullopt), ShowDialog{Dialog::export_files}};
       }});
  rows.push_back(
      {.id = "file/export_experiment",
       .title = "Experiment as Python…",
       .menu = "File",
       .group = 2,
       .about = "Writes the ablated heads and edits of the whole model as a program for transformers",
       .disabled_reason = unless([](const ActionContext& now) { return now.pending.full_model != nullptr; },
                                 "no whole model is open"),
       .command = [](const ActionContext&) {
         return CommandList{set<&Settings::export_format>(ExportFormat::experiment),
                            ShowDialog{Dialog::export_files}};
       }});
  rows.push_back({.id = "file/quit",
                  .title = "Quit",
                  .menu = "File",
                  .group = 3,
                  .keys = {ctrl(Key::q)},
                  .command = always(Quit{})});
  return rows;
}

namespace {

using core::formats::CopyScope;

struct CopyScopeRow {
  CopyScope scope;
  const char* name;
  const char* words;
};
constexpr std::array copy_scopes{CopyScopeRow{CopyScope::matrix, "matrix", "Matrix"},
                                 CopyScopeRow{CopyScope::row, "row", "Row"},
                                 CopyScopeRow{CopyScope::number, "number", "Number"}};
constexpr std::array decimals{1, 2, 3, 4, 6, 8, 12};

CommandList copy_program(const ActionContext& s) {
  try {
    return {CopyText{program_of(s.pending.model, s.forms, s.document.title)}};
  } catch (const core::Error& error) {  // not every model can be written as a program
    return {ShowMessage{error.what(), true}};
  }
}

/// Returns the last copy choice in words: "row as LaTeX".
std::string last_choice(const ActionContext& s) {
  std::string words = "matrix";
  for (const CopyScopeRow& scope : copy_scopes)
    if (scope.scope == s.settings.copy.scope) words = scope.name;
  return words + " as " + core::formats::copy_formats().at(s.settings.copy.form).title;
}

Action form_row(const ActionContext& s, const std::string& menu, const std::optional<CellRef>& cell,
                const CopyScopeRow& scope, std::size_t form) {
  const auto& info = core::formats::copy_formats()[form];
  const CopyChoice choice{scope.scope, form};
  const std::string rounded = fmt::format(", {} decimals", s.settings.copy_decimals);
  Action row{.id = std::string("copy/") + scope.name + "/" + info.name,
             .title = info.title + (info.takes_decimals ? rounded : std::string()),
             .menu = menu + "/" + scope.words,
             .group = 1};
  if (scope.scope != CopyScope::matrix)
    row.disabled_reason = unless([cell](const ActionContext& now) { return has_selected_cell(now, cell); },
                                 "no cell is chosen");
  row.command = [cell, choice](const ActionContext& now) {
    return CommandList{set<&Settings::copy>(choice),
                       CopyText{copy_text(now, copy_source(now, cell), choice)}};
  };
  return row;
}

}  // namespace

void add_matrix_copy_actions(ActionRows& rows, const ActionContext& s, const std::string& menu,
                             const CellRef& cell) {
  for (std::size_t form = 0; form < core::formats::copy_formats().size(); ++form) {
    Action row = form_row(s, menu, cell, copy_scopes[0], form);
    row.menu = menu, row.group = 2;
    rows.push_back(std::move(row));
  }
}

void add_copy_actions(ActionRows& rows, const ActionContext& s, const std::string& menu,
                      const std::optional<CellRef>& cell) {
  rows.push_back({.id = "copy/source", .title = copy_title(s, cell), .menu = menu, .group = 1});
  for (const CopyScopeRow& scope : copy_scopes)
    for (std::size_t form = 0; form < core::formats::copy_formats().size(); ++form)
      rows.push_back(form_row(s, menu, cell, scope, form));
  for (const int n : decimals)
    rows.push_back({.id = "copy/decimals/" + std::to_string(n),
                    .title = std::to_string(n),
                    .menu = menu + "/Decimals of Markdown and LaTeX",
                    .group = 1,
                    .command = always(set<&Settings::copy_decimals>(n)),
                    .checked = [n](const ActionContext& now) { return now.settings.copy_decimals == n; }});
  rows.push_back({.id = "copy/program",
                  .title = "The model as a PyTorch program",
                  .menu = menu,
                  .group = 1,
                  .part = 1,
                  .command = copy_program});
  rows.push_back({.id = "copy/again",
                  .title = "Copy again: " + last_choice(s),
                  .menu = cell ? "" : "Edit",
                  .group = 1,
                  .keys = {ctrl_shift(Key::c)},
                  .sheet_text = "Copies again in the form last selected under Copy as",
                  .command = [](const ActionContext& now) {
                    return CommandList{CopyText{copy_text(now, copy_source(now), now.settings.copy)}};
                  }});
}

namespace {

constexpr const char* full_model_menu = "Model/Whole model";
constexpr const char* no_full_model = "no whole model is open";

bool has_full_model(const ActionContext& s) {
  return s.pending.full_model != nullptr;
}

/// Returns the disabled_reason of the layer before (−1) or after (+1) the selected one.
std::function<std::string(const ActionContext&)> layer_step_disabled_reason(int by) {
  return [by](const ActionContext& s) -> std::string {
    if (!has_full_model(s)) return no_full_model;
    const std::size_t now = s.pending.full_model->experiment.layer;
    if (by < 0) return now > 0 ? "" : "this is the first layer";
    return now + 1 < s.pending.full_model->model->description().sizes.n_layers ? ""
                                                                               : "this is the last layer";
  };
}

void add_layer_steps(ActionRows& rows) {
  for (const int by : {-1, 1})
    rows.push_back({.id = by < 0 ? "whole/layer_before" : "whole/layer_after",
                    .title = by < 0 ? "Previous layer" : "Next layer",
                    .menu = full_model_menu,
                    .group = 5,
                    .keys = {plain(by < 0 ? Key::page_up : Key::page_down)},
                    .keys_apply = outside_editor,
                    .sheet_text = "Whole models: previous, next layer",
                    .disabled_reason = layer_step_disabled_reason(by),
                    .command = [by](const ActionContext& now) {
                      const std::size_t layer = now.pending.full_model->experiment.layer;
                      return CommandList{ShowLayer{by < 0 ? layer - 1 : layer + 1}};
                    }});
}

}  // namespace

namespace {

/// Returns what is selected in the residual stream, or nullptr.
const StreamAddition* selected_addition(const ActionContext& s) {
  const auto& addition = s.pending.layers->addition;
  const bool is_selected = addition && s.pending.look.tab == Tab::layers &&
                           addition->layer == s.pending.full_model->experiment.layer &&
                           addition->head == s.pending.look.head;
  return is_selected ? &*addition : nullptr;
}

}  // namespace

void add_layers_tab(ActionRows& rows, const ActionContext& s) {
  rows.push_back({.id = "tab/layers",
                  .title = "Layers",
                  .menu = "View",
                  .about = "Every head of every layer of a whole model",
                  .keys = {ctrl(Key::digit_6)},
                  .sheet_text = "Layers of a whole model",
                  .disabled_reason = unless(has_full_model, no_full_model),
                  .command = always(set<&Look::tab>(Tab::layers)),
                  .checked = [](const ActionContext& now) { return now.displayed.look.tab == Tab::layers; }});
  if (!has_full_model(s))
    rows.back().section = std::exchange(rows.back().menu, {});  // in the key sheet alone
}

bool compares_prompts(const ActionContext& now) {
  return has_full_model(now) && now.pending.full_model->experiment.first;
}

void add_full_model(ActionRows& rows, const ActionContext& s) {
  const std::size_t first = rows.size();
  add_layer_steps(rows);
  rows.push_back(
      {.id = "whole/head_off",
       .title = "Ablate or enable the selected head",
       .menu = full_model_menu,
       .group = 5,
       .keys = {plain(Key::x)},
       .keys_apply = [](const Pending& view) { return outside_editor(view) && view.look.tab != Tab::learn; },
       .sheet_text = "Whole models: ablate or enable the selected head, or heads",
       .disabled_reason = [](const ActionContext& now) -> std::string {
         if (!has_full_model(now)) return no_full_model;
         const StreamAddition* addition = selected_addition(now);
         return addition && addition->of_mlp
                    ? "an MLP cannot be ablated: select a head, or the heads of a layer"
                    : "";
       },
       .command =
           [](const ActionContext& now) {
             ToggleLayerHead toggle{now.pending.full_model->experiment.layer, now.pending.look.head};
             if (selected_addition(now)) toggle.head.reset();
             return CommandList{toggle};
           }});
  rows.push_back(
      {.id = "whole/sweep",
       .title = "Compute all ablation effects",
       .menu = full_model_menu,
       .group = 5,
       .part = 1,
       .about = "How the logit of the selected token changes without each head, as bars under the maps",
       .disabled_reason = unless(has_full_model, no_full_model),
       .command = always(SweepHeads{true})});
  rows.push_back({.id = "whole/undo_all",
                  .title = "Undo all edits of the model",
                  .menu = full_model_menu,
                  .group = 5,
                  .part = 1,
                  .disabled_reason = unless(
                      [](const ActionContext& now) {
                        return has_full_model(now) && now.pending.full_model->experiment.is_edited();
                      },
                      "nothing in a whole model has been edited"),
                  .command = always(DiscardEdits{})});
  rows.push_back({.id = "whole/compare",
                  .title = "Compare the layer with the original",
                  .menu = full_model_menu,
                  .group = 5,
                  .part = 1,
                  .disabled_reason = unless(has_full_model, no_full_model),
                  .command = always(CompareEdits{})});
  rows.push_back(
      {.id = "whole/two_prompts",
       .title = "Two prompts…",
       .menu = "Compare",
       .group = 5,
       .about =
           "Compares this prompt with a second one, and patches parts of its pass into that of the second",
       .disabled_reason = unless(has_full_model, no_full_model),
       .command =
           [](const ActionContext& now) {
             const auto& model = *now.pending.full_model;
             const std::string text = core::experiment::whole_text(*model.model, model.experiment);
             if (model.experiment.first)
               return CommandList{SetPrompts{std::nullopt, model.experiment.first->text}};
             return CommandList{SetPrompts{core::experiment::FirstPrompt{text}, text}};
           },
       .checked = compares_prompts});
  rows.push_back({.id = "whole/patch",
                  .title = "Patch the selected part",
                  .menu = full_model_menu,
                  .group = 5,
                  .about = "Takes it from the pass over the first prompt, or no longer",
                  .keys = {plain(Key::p)},
                  .keys_apply = outside_editor,
                  .disabled_reason = unless(compares_prompts, "there is one prompt: begin with Two prompts…"),
                  .command = [](const ActionContext& now) {
                    return CommandList{TogglePatch{selected_patch(now.pending)}};
                  }});
  rows.push_back({.id = "whole/prompt_maps",
                  .title = "Maps of A, B or B − A",
                  .menu = full_model_menu,
                  .group = 5,
                  .keys = {plain(Key::b)},
                  .keys_apply = outside_editor,
                  .disabled_reason = unless(compares_prompts, "there is one prompt: begin with Two prompts…"),
                  .command = [](const ActionContext& now) {
                    const auto maps = static_cast<int>(now.pending.layers->maps);
                    return CommandList{set<&LayersLook::maps>(static_cast<LayerMaps>((maps + 2) % 3))};
                  }});
  rows.push_back({.id = "whole/scan",
                  .title = "Heads over many texts…",
                  .menu = full_model_menu,
                  .group = 5,
                  .about = "Measures every head over a file of texts, and shows examples of each",
                  .disabled_reason = unless(has_full_model, no_full_model),
                  .command = always(ShowDialog{Dialog::scan})});
  constexpr std::array<std::pair<const char*, const char*>, 4> lenses{
      {{"whole/lens/logit", "Logit lens"},
       {"whole/lens/between", "Logit lens, also between attention and MLP"},
       {"whole/lens/tuned", "Tuned lens"},
       {"whole/lens/jacobian", "Jacobian lens"}}};
  for (std::size_t k = 0; k < lenses.size(); ++k) {
    const auto kind = static_cast<core::transformer::LensKind>(k);
    rows.push_back(
        {.id = lenses[k].first,
         .title = lenses[k].second,
         .menu = std::string(full_model_menu) + "/Lens",
         .group = 5,
         .disabled_reason = unless(has_full_model, no_full_model),
         .command = always(set<&LayersLook::lens>(kind)),
         .checked = [kind](const ActionContext& now) { return now.pending.layers->lens == kind; }});
  }
  rows.push_back(
      {.id = "whole/sources",
       .title = "Sources of the score",
       .menu = full_model_menu,
       .group = 5,
       .about =
           "Shows the pinned score by what has written its query and key, or as it is worked out; else pins the largest weight of the row",
       .keys = {plain(Key::s)},
       .disabled_reason = unless(has_full_model, no_full_model),
       .command =
           [](const ActionContext& now) {
             const auto& pinned = now.displayed.selection.pinned;
             const auto weight = largest_weight(now.pending);
             if (weight && !(pinned && (is_score(*pinned) || is_written_sum(*pinned))))
               return CommandList{AskSources{*weight}};
             return CommandList{set<&LayersLook::shows_sources>(!now.pending.layers->shows_sources)};
           },
       .checked =
           [](const ActionContext& now) {
             return has_full_model(now) && now.pending.layers->shows_sources;
           }});
  for (const bool back : {false, true})
    rows.push_back({.id = back ? "whole/back" : "whole/more",
                    .title = back ? "Remove last token" : "Generate token",
                    .menu = full_model_menu,
                    .group = 5,
                    .part = 2,
                    .disabled_reason = unless(has_full_model, no_full_model),
                    .command = always(StepGeneration{back})});
  if (!has_full_model(s))  // disabled rows would only lengthen the menu
    for (std::size_t k = first; k < rows.size(); ++k) rows[k].menu.clear();
}

namespace {

bool in_lesson(const Pending& view) {
  return view.selection.lesson && !view.selection.cursor;
}
/// Whether a lesson is open: arrow keys change its step even while the matrix editor has the keyboard.
bool anywhere_in_lesson(const Pending& view) {
  return view.selection.lesson.has_value();
}

void add_lesson_steps(ActionRows& rows) {
  const auto row = [&](const char* id, const char* title, Key key, int by, const char* sheet_text) {
    const auto keys_apply = by == 0 ? in_lesson : anywhere_in_lesson;
    rows.push_back({.id = id,
                    .title = title,
                    .menu = "Lessons",
                    .group = 1,
                    .keys = {plain(key)},
                    .keys_apply = keys_apply,
                    .sheet_text = sheet_text,
                    .disabled_reason = unless(
                        [](const ActionContext& now) { return now.displayed.selection.lesson.has_value(); },
                        "no lesson is open"),
                    .command = always(StepLesson{by})});
  };
  row("lesson/back", "Previous step", Key::left, -1, "In a lesson: previous, next step");
  row("lesson/next", "Next step", Key::right, 1, "In a lesson: previous, next step");
  row("lesson/again", "Restart this step", Key::r, 0, "In a lesson: restart the step");
}

/// Returns a command that opens a dialog with an empty search field.
std::function<CommandList(const ActionContext&)> show_search_dialog(Dialog dialog) {
  return always(set<&Forms::search>({}), set<&Forms::dialog>(dialog));
}

/// Returns a lesson's title and how many steps are done: "Causal attention in eleven steps · 6 of 11".
std::string title_with_progress(const core::lessons::Lesson& lesson, const ActionContext& s) {
  const std::size_t n = lesson.steps.size();
  const LessonProgress* known = progress_of(s.progress, lesson.name);
  if (!known || known->done.empty()) return lesson.title;
  const std::size_t done = known->done.size();
  return std::string(lesson.title) + " · " +
         (done == n ? fmt::format("all {} done", n) : fmt::format("{} of {}", done, n));
}

}  // namespace

std::vector<Action> lesson_actions(const ActionContext& s) {
  ActionRows rows;
  if (const auto* left = s.displayed.selection.lesson ? nullptr : unfinished_lesson(s.progress))
    rows.push_back({.id = "lesson/resume",
                    .title = fmt::format("Resume: {}, step {}", left->title,
                                         progress_of(s.progress, left->name)->step + 1),
                    .menu = "Lessons",
                    .group = -1,
                    .command = always(StartLesson{left->name})});
  for (const auto& lesson : core::lessons::lessons())
    rows.push_back({.id = std::string("lessons/") + lesson.name,
                    .title = title_with_progress(lesson, s),
                    .menu = "Lessons",
                    .about = lesson.about,
                    .section = lesson.group,
                    .remark = fmt::format("{} min", lesson.minutes),
                    .command = always(StartLesson{lesson.name}),
                    .checked = [name = lesson.name, n = lesson.steps.size()](const ActionContext& now) {
                      const LessonProgress* known = progress_of(now.progress, name);
                      return known && known->done.size() == n;
                    }});
  add_lesson_steps(rows);
  rows.push_back(
      {.id = "lesson/new",
       .title = "New from this session…",
       .menu = "Lessons",
       .group = 2,
       .about =
           "Writes the first draft of a lesson, next to the session, that begins as it is now; opens with File, Open",
       .disabled_reason = [](const ActionContext& now) -> std::string {
         if (now.displayed.selection.lesson) return "a lesson is open: leave it with Esc";
         return now.document.path ? "" : "save the session first";
       },
       .command = always(NewLesson{})});
  rows.push_back({.id = "lesson/leave",
                  .title = "Leave the lesson",
                  .menu = "Lessons",
                  .group = 1,
                  .disabled_reason = unless(
                      [](const ActionContext& now) { return now.displayed.selection.lesson.has_value(); },
                      "no lesson is open"),
                  .command = always(LeaveLesson{})});
  return rows;
}

std::vector<Action> help_actions(const ActionContext&) {
  ActionRows rows;
  rows.push_back({.id = "help/palette",
                  .title = "Find an action…",
                  .menu = "Help",
                  .about = "Finds any action, preset, stage, lesson or setting by its letters",
                  .keys = {ctrl_shift(Key::p)},
                  .sheet_text = "Find any action, preset, stage, lesson or setting",
                  .command = show_search_dialog(Dialog::palette)});
  rows.push_back({.id = "help/keys",
                  .title = "Keys",
                  .menu = "Help",
                  .about = "Lists all keys",
                  .keys = {plain(Key::f1), plain(Key::question)},
                  .sheet_text = "This list of keys",
                  .command = show_search_dialog(Dialog::keys)});
  rows.push_back({.id = "help/glossary",
                  .title = "Glossary",
                  .menu = "Help",
                  .about = "Defines the terms that this program uses",
                  .command = show_dialog(Dialog::glossary)});
  rows.push_back({.id = "help/tour",
                  .title = "Take the tour",
                  .menu = "Help",
                  .group = 1,
                  .about = "Eight things to try in this window; takes about a minute",
                  .command = always(StartTour{})});
  rows.push_back({.id = "help/about",
                  .title = "About",
                  .menu = "Help",
                  .group = 2,
                  .command = show_dialog(Dialog::about)});
  rows.push_back({.id = "help/focus",
                  .title = "Next control; enter a region; leave it",
                  .key_text = "arrows, Enter, Esc"});
  return rows;
}

}  // namespace app::rows
