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
    std::string title = preset.title;
    if (const std::string group = "Modern: "; title.starts_with(group))
      title = static_cast<char>(std::toupper(title[group.size()])) + title.substr(group.size() + 1);
    const ActionRow row =
        add(rows, std::string("new/") + preset.name, std::move(title), "File/New/" + preset_submenu(preset))
            .about(preset.about)
            .shows_about()
            .section(preset_submenu(preset))
            .does(LoadPreset{preset.name});
    if (&preset == &editing::default_preset()) row.keys(ctrl(Key::n), alt(Key::n)).sheet_text("New");
  }
}

void add_recent(ActionRows& rows, const ActionContext& s) {
  for (std::size_t k = 0; k < s.document.recent.size(); ++k) {
    const auto& path = s.document.recent[k];
    add(rows, "recent/" + std::to_string(k), path.filename().string(), "File/Open recent")
        .about(path.string())
        .does(OpenPath{path});
  }
  if (s.document.recent.empty())
    add(rows, "recent/none", "none yet", "File/Open recent").disabled_reason([](const ActionContext&) {
      return "no file has been opened or saved";
    });
}

/// Adds the whole models that are installed with the program.
void add_models(ActionRows& rows, const ActionContext& s) {
  for (const auto& path : s.forms.models)
    add(rows, "model/" + path.filename().string(), model_title(path), "File/New/Whole model")
        .about(path.string())
        .does(OpenPath{.path = path});
  if (s.forms.models.empty())
    add(rows, "model/none", "none", "File/New/Whole model").disabled_reason([](const ActionContext&) {
      return "no whole model is installed with the program";
    });
}

void add_layers(ActionRows& rows, const ActionContext& s) {
  for (std::size_t k = 0; k < s.document.layers.size(); ++k)
    add(rows, "layer/" + std::to_string(k),
        s.document.layers[k].empty() ? std::to_string(k) : s.document.layers[k], "File/Layer of this file")
        .does(ImportLayer{k})
        .checked([k](const ActionContext& now) { return now.document.layer == k; });
}

}  // namespace

std::vector<Action> file_actions(const ActionContext& s) {
  ActionRows rows;
  add_presets(rows);
  add_learning_tasks(rows);
  add(rows, "file/start", "Start page", "File")
      .about("A small example, lessons, a whole model, one that learns, and recent files")
      .only_if([](const ActionContext& now) { return !now.pending.selection.lesson; },
               "a lesson is open: leave it with Esc")
      .does(set<&Forms::start_page>(true));
  add(rows, "file/open", "Open…", "File").keys(ctrl(Key::o)).does(ShowDialog{Dialog::open});
  add_models(rows, s);
  add(rows, "file/as_tensors", "Open tensors only…", "File")
      .about("Opens one layer of this model's file as a checkpoint layer")
      .only_if(
          [](const ActionContext& now) {
            return now.pending.full_model && !now.pending.full_model->model->description().is_attached;
          },
          "no whole model is open that was read from a file")
      .command([](const ActionContext& now) {
        return OpenPath{.path = now.pending.full_model->model->description().file, .as_tensors = true};
      });
  add_recent(rows, s);
  add(rows, "file/choose", "Pick layer from file…", "File")
      .only_if([](const ActionContext& now) { return now.document.of_tensors; },
               "the model was not made of a file of tensors")
      .does(ShowDialog{Dialog::import_tensors});
  add_layers(rows, s);
  add(rows, "file/save", "Save", "File", 2).keys(ctrl(Key::s)).does(SaveFile{});
  add(rows, "file/save_as", "Save as…", "File", 2)
      .keys(ctrl_shift(Key::s))
      .sheet_text("Save under another name")
      .does(ShowDialog{Dialog::save_as});
  add(rows, "file/link", "Copy link", "File", 2)
      .about("A link that opens this preset, this step of a lesson, or a copy of this work")
      .only_if([](const ActionContext& now) { return !now.pending.full_model; },
               "a link cannot carry a whole model")
      .does(CopyLink{});
  add(rows, "file/export", "Export…", "File", 2)
      .about("Writes numbers, a figure or a program")
      .keys(ctrl(Key::e))
      .sheet_text("Export numbers, a figure or a program")
      .does(set<&ExportChoice::from>(std::nullopt), ShowDialog{Dialog::export_files});
  add(rows, "file/export_experiment", "Experiment as Python…", "File", 2)
      .about("Writes the ablated heads and edits of the whole model as a program for transformers")
      .only_if([](const ActionContext& now) { return now.pending.full_model != nullptr; },
               "no whole model is open")
      .does(set<&Settings::export_format>(ExportFormat::experiment), ShowDialog{Dialog::export_files});
  add(rows, "file/quit", "Quit", "File", 3).keys(ctrl(Key::q)).does(Quit{});
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

void add_form(ActionRows& rows, const ActionContext& s, const std::string& menu, int group,
              const std::optional<CellRef>& cell, const CopyScopeRow& scope, std::size_t form) {
  const auto& info = core::formats::copy_formats()[form];
  const CopyChoice choice{scope.scope, form};
  const std::string rounded = fmt::format(", {} decimals", s.settings.copy_decimals);
  const ActionRow row = add(rows, std::string("copy/") + scope.name + "/" + info.name,
                            info.title + (info.takes_decimals ? rounded : std::string()), menu, group)
                            .command([cell, choice](const ActionContext& now) {
                              return CommandList{set<&Settings::copy>(choice),
                                                 CopyText{copy_text(now, copy_source(now, cell), choice)}};
                            });
  if (scope.scope != CopyScope::matrix)
    row.only_if([cell](const ActionContext& now) { return has_selected_cell(now, cell); },
                "no cell is chosen");
}

}  // namespace

void add_matrix_copy_actions(ActionRows& rows, const ActionContext& s, const std::string& menu,
                             const CellRef& cell) {
  for (std::size_t form = 0; form < core::formats::copy_formats().size(); ++form)
    add_form(rows, s, menu, 2, cell, copy_scopes[0], form);
}

void add_copy_actions(ActionRows& rows, const ActionContext& s, const std::string& menu,
                      const std::optional<CellRef>& cell) {
  add(rows, "copy/source", copy_title(s, cell), menu, 1);
  for (const CopyScopeRow& scope : copy_scopes)
    for (std::size_t form = 0; form < core::formats::copy_formats().size(); ++form)
      add_form(rows, s, menu + "/" + scope.words, 1, cell, scope, form);
  for (const int n : decimals)
    add(rows, "copy/decimals/" + std::to_string(n), std::to_string(n),
        menu + "/Decimals of Markdown and LaTeX", 1)
        .does(set<&Settings::copy_decimals>(n))
        .checked([n](const ActionContext& now) { return now.settings.copy_decimals == n; });
  add(rows, "copy/program", "The model as a PyTorch program", menu, 1, 1).command(copy_program);
  add(rows, "copy/again", "Copy again: " + last_choice(s), cell ? "" : "Edit", 1)
      .keys(ctrl_shift(Key::c))
      .sheet_text("Copies again in the form last selected under Copy as")
      .command([](const ActionContext& now) {
        return CopyText{copy_text(now, copy_source(now), now.settings.copy)};
      });
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
    add(rows, by < 0 ? "whole/layer_before" : "whole/layer_after", by < 0 ? "Previous layer" : "Next layer",
        full_model_menu, 5)
        .keys(plain(by < 0 ? Key::page_up : Key::page_down))
        .keys_apply(outside_editor)
        .sheet_text("Whole models: previous, next layer")
        .disabled_reason(layer_step_disabled_reason(by))
        .command([by](const ActionContext& now) {
          const std::size_t layer = now.pending.full_model->experiment.layer;
          return ShowLayer{by < 0 ? layer - 1 : layer + 1};
        });
}

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
  add(rows, "tab/layers", "Layers", "View")
      .about("Every head of every layer of a whole model")
      .keys(ctrl(Key::digit_6))
      .sheet_text("Layers of a whole model")
      .only_if(has_full_model, no_full_model)
      .does(set<&Look::tab>(Tab::layers))
      .checked([](const ActionContext& now) { return now.displayed.look.tab == Tab::layers; });
  if (!has_full_model(s))
    rows.back().section = std::exchange(rows.back().menu, {});  // in the key sheet alone
}

bool compares_prompts(const ActionContext& now) {
  return has_full_model(now) && now.pending.full_model->experiment.first;
}

void add_full_model(ActionRows& rows, const ActionContext& s) {
  const std::size_t first = rows.size();
  add_layer_steps(rows);
  add(rows, "whole/head_off", "Ablate or enable the selected head", full_model_menu, 5)
      .keys(plain(Key::x))
      .keys_apply([](const Pending& view) { return outside_editor(view) && view.look.tab != Tab::learn; })
      .sheet_text("Whole models: ablate or enable the selected head, or heads")
      .disabled_reason([](const ActionContext& now) -> std::string {
        if (!has_full_model(now)) return no_full_model;
        const StreamAddition* addition = selected_addition(now);
        return addition && addition->of_mlp
                   ? "an MLP cannot be ablated: select a head, or the heads of a layer"
                   : "";
      })
      .command([](const ActionContext& now) {
        ToggleLayerHead toggle{now.pending.full_model->experiment.layer, now.pending.look.head};
        if (selected_addition(now)) toggle.head.reset();
        return toggle;
      });
  add(rows, "whole/sweep", "Compute all ablation effects", full_model_menu, 5, 1)
      .about("How the logit of the selected token changes without each head, as bars under the maps")
      .only_if(has_full_model, no_full_model)
      .does(SweepHeads{true});
  add(rows, "whole/undo_all", "Undo all edits of the model", full_model_menu, 5, 1)
      .only_if(
          [](const ActionContext& now) {
            return has_full_model(now) && now.pending.full_model->experiment.is_edited();
          },
          "nothing in a whole model has been edited")
      .does(DiscardEdits{});
  add(rows, "whole/compare", "Compare the layer with the original", full_model_menu, 5, 1)
      .only_if(has_full_model, no_full_model)
      .does(CompareEdits{});
  add(rows, "whole/two_prompts", "Two prompts…", "Compare", 5)
      .about("Compares this prompt with a second one, and patches parts of its pass into that of the second")
      .only_if(has_full_model, no_full_model)
      .command([](const ActionContext& now) {
        const auto& model = *now.pending.full_model;
        const std::string text = core::experiment::whole_text(*model.model, model.experiment);
        if (model.experiment.first)
          return CommandList{SetPrompts{std::nullopt, model.experiment.first->text}};
        return CommandList{SetPrompts{core::experiment::FirstPrompt{text}, text}};
      })
      .checked(compares_prompts);
  add(rows, "whole/patch", "Patch the selected part", full_model_menu, 5)
      .about("Takes it from the pass over the first prompt, or no longer")
      .keys(plain(Key::p))
      .keys_apply(outside_editor)
      .only_if(compares_prompts, "there is one prompt: begin with Two prompts…")
      .command([](const ActionContext& now) { return TogglePatch{selected_patch(now.pending)}; });
  add(rows, "whole/prompt_maps", "Maps of A, B or B − A", full_model_menu, 5)
      .keys(plain(Key::b))
      .keys_apply(outside_editor)
      .only_if(compares_prompts, "there is one prompt: begin with Two prompts…")
      .command([](const ActionContext& now) {
        const auto maps = static_cast<int>(now.pending.layers->maps);
        return set<&LayersLook::maps>(static_cast<LayerMaps>((maps + 2) % 3));
      });
  add(rows, "whole/scan", "Heads over many texts…", full_model_menu, 5)
      .about("Measures every head over a file of texts, and shows examples of each")
      .only_if(has_full_model, no_full_model)
      .does(ShowDialog{Dialog::scan});
  constexpr std::array<std::pair<const char*, const char*>, 4> lenses{
      {{"whole/lens/logit", "Logit lens"},
       {"whole/lens/between", "Logit lens, also between attention and MLP"},
       {"whole/lens/tuned", "Tuned lens"},
       {"whole/lens/jacobian", "Jacobian lens"}}};
  for (std::size_t k = 0; k < lenses.size(); ++k) {
    const auto kind = static_cast<core::transformer::LensKind>(k);
    add(rows, lenses[k].first, lenses[k].second, std::string(full_model_menu) + "/Lens", 5)
        .only_if(has_full_model, no_full_model)
        .does(set<&LayersLook::lens>(kind))
        .checked([kind](const ActionContext& now) { return now.pending.layers->lens == kind; });
  }
  add(rows, "whole/sources", "Sources of the score", full_model_menu, 5)
      .about(
          "Shows the pinned score by what has written its query and key, or as it is worked out; else pins the largest weight of the row")
      .keys(plain(Key::s))
      .only_if(has_full_model, no_full_model)
      .command([](const ActionContext& now) -> Command {
        const auto& pinned = now.displayed.selection.pinned;
        const auto weight = largest_weight(now.pending);
        if (weight && !(pinned && (is_score(*pinned) || is_written_sum(*pinned)))) return AskSources{*weight};
        return set<&LayersLook::shows_sources>(!now.pending.layers->shows_sources);
      })
      .checked(
          [](const ActionContext& now) { return has_full_model(now) && now.pending.layers->shows_sources; });
  for (const bool back : {false, true})
    add(rows, back ? "whole/back" : "whole/more", back ? "Remove last token" : "Generate token",
        full_model_menu, 5, 2)
        .only_if(has_full_model, no_full_model)
        .does(StepGeneration{back});
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
    add(rows, id, title, "Lessons", 1)
        .keys(plain(key))
        .keys_apply(keys_apply)
        .sheet_text(sheet_text)
        .only_if([](const ActionContext& now) { return now.displayed.selection.lesson.has_value(); },
                 "no lesson is open")
        .does(StepLesson{by});
  };
  row("lesson/back", "Previous step", Key::left, -1, "In a lesson: previous, next step");
  row("lesson/next", "Next step", Key::right, 1, "In a lesson: previous, next step");
  row("lesson/again", "Restart this step", Key::r, 0, "In a lesson: restart the step");
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
    add(rows, "lesson/resume",
        fmt::format("Resume: {}, step {}", left->title, progress_of(s.progress, left->name)->step + 1),
        "Lessons", -1)
        .does(StartLesson{left->name});
  for (const auto& lesson : core::lessons::lessons())
    add(rows, std::string("lessons/") + lesson.name, title_with_progress(lesson, s), "Lessons")
        .about(lesson.about)
        .section(lesson.group)
        .remark(fmt::format("{} min", lesson.minutes))
        .does(StartLesson{lesson.name})
        .checked([name = lesson.name, n = lesson.steps.size()](const ActionContext& now) {
          const LessonProgress* known = progress_of(now.progress, name);
          return known && known->done.size() == n;
        });
  add_lesson_steps(rows);
  add(rows, "lesson/new", "New from this session…", "Lessons", 2)
      .about(
          "Writes the first draft of a lesson, next to the session, that begins as it is now; opens with File, Open")
      .disabled_reason([](const ActionContext& now) -> std::string {
        if (now.displayed.selection.lesson) return "a lesson is open: leave it with Esc";
        return now.document.path ? "" : "save the session first";
      })
      .does(NewLesson{});
  add(rows, "lesson/leave", "Leave the lesson", "Lessons", 1)
      .only_if([](const ActionContext& now) { return now.displayed.selection.lesson.has_value(); },
               "no lesson is open")
      .does(LeaveLesson{});
  return rows;
}

std::vector<Action> help_actions(const ActionContext&) {
  ActionRows rows;
  add(rows, "help/palette", "Find an action…", "Help")
      .about("Finds any action, preset, stage, lesson or setting by its letters")
      .keys(ctrl_shift(Key::p))
      .sheet_text("Find any action, preset, stage, lesson or setting")
      .does(set<&Forms::search>({}), set<&Forms::dialog>(Dialog::palette));
  add(rows, "help/keys", "Keys", "Help")
      .about("Lists all keys")
      .keys(plain(Key::f1), plain(Key::question))
      .sheet_text("This list of keys")
      .does(set<&Forms::search>({}), set<&Forms::dialog>(Dialog::keys));
  add(rows, "help/glossary", "Glossary", "Help")
      .about("Defines the terms that this program uses")
      .does(ShowDialog{Dialog::glossary});
  add(rows, "help/tour", "Take the tour", "Help", 1)
      .about("Eight things to try in this window; takes about a minute")
      .does(StartTour{});
  add(rows, "help/about", "About", "Help", 2).does(ShowDialog{Dialog::about});
  add(rows, "help/focus", "Next control; enter a region; leave it", "").key_text("arrows, Enter, Esc");
  return rows;
}

}  // namespace app::rows
