#include <string>

#include "app/session/learning.hpp"
#include "app/ui/actions/action_rows.hpp"

/// A run of training.
namespace app::rows {
namespace {

constexpr const char* learning_menu = "View/Learn";

bool has_run(const ActionContext& s) {
  return s.pending.learning && s.pending.learning->run();
}

bool in_learn(const Pending& view) {
  return view.look.tab == Tab::learn && !view.selection.cursor && !view.selection.presentation.on;
}
bool in_learn_outside_lessons(const Pending& view) {
  return in_learn(view) && !view.selection.lesson;  // whose steps have the arrows
}

/// Returns the commands that pause and show the snapshot at an index.
CommandList seek(const ActionContext& s, std::size_t index) {
  const auto& snapshots = s.pending.learning->snapshots();
  const bool is_newest = index + 1 >= snapshots.size();
  return {set<&LearningLook::plays>(false),
          set<&LearningLook::shown>(is_newest ? std::nullopt : std::optional(snapshots[index]->step))};
}

std::size_t shown(const ActionContext& s) {
  return s.pending.learning->shown(*s.pending.learning_look);
}

bool is_at_newest(const ActionContext& s) {
  return shown(s) + 1 == s.pending.learning->snapshots().size();
}

Action learning_row(const char* id, const char* title) {
  Action row{.id = id, .title = title, .menu = learning_menu, .group = 1};
  row.keys_apply = in_learn;
  row.disabled_reason = unless(has_run, "nothing is being learned");
  return row;
}

/// Returns the reason for which the run is not before its end or after its beginning.
std::function<std::string(const ActionContext&)> unless_at_start(const char* words) {
  return [words](const ActionContext& s) -> std::string {
    if (!has_run(s)) return "nothing is being learned";
    return shown(s) == 0 ? words : "";
  };
}

}  // namespace

void add_learning(ActionRows& rows, const ActionContext& s) {
  rows.push_back({.id = "tab/learn",
                  .title = "Learn",
                  .menu = "View",
                  .about = "A small transformer that learns a task",
                  .keys = {ctrl(Key::digit_7)},
                  .sheet_text = "Learn: the run of training",
                  .disabled_reason = unless(has_run, "nothing is being learned"),
                  .command = always(set<&Forms::start_page>(false), set<&Look::tab>(Tab::learn)),
                  .checked = [](const ActionContext& now) { return now.displayed.look.tab == Tab::learn; }});
  if (!has_run(s)) rows.back().section = std::exchange(rows.back().menu, {});  // in the key sheet alone

  Action play = learning_row("learn/play", "Play or pause");
  play.about = "Trains as long as Learn is displayed";
  play.keys = {plain(Key::space)};
  play.sheet_text = "In Learn: play, pause";
  play.command = [](const ActionContext& now) {
    return CommandList{set<&LearningLook::shown>(std::nullopt),
                       set<&LearningLook::plays>(!now.pending.learning_look->plays),
                       set<&Look::tab>(Tab::learn)};
  };
  play.checked = [](const ActionContext& now) {
    return now.pending.learning_look && now.pending.learning_look->plays;
  };
  rows.push_back(std::move(play));

  Action back = learning_row("learn/back", "Previous snapshot");
  back.keys = {plain(Key::left)};
  back.keys_apply = in_learn_outside_lessons;
  back.sheet_text = "In Learn: previous snapshot, next one or one step";
  back.disabled_reason = unless_at_start("this is the first snapshot");
  back.command = [](const ActionContext& now) { return seek(now, shown(now) - 1); };
  rows.push_back(std::move(back));

  Action step = learning_row("learn/step", "One step");
  step.about = "The next snapshot or, at the newest one, one batch of training";
  step.keys = {plain(Key::right)};
  step.keys_apply = in_learn_outside_lessons;
  step.sheet_text = "In Learn: previous snapshot, next one or one step";
  step.command = [](const ActionContext& now) {
    if (!is_at_newest(now)) return seek(now, shown(now) + 1);
    return CommandList{set<&LearningLook::plays>(false), StepLearning{1}};
  };
  rows.push_back(std::move(step));

  Action first = learning_row("learn/first", "First snapshot");
  first.keys = {plain(Key::home)};
  first.sheet_text = "In Learn: first, newest snapshot";
  first.disabled_reason = unless_at_start("this is the first snapshot");
  first.command = [](const ActionContext& now) { return seek(now, 0); };
  rows.push_back(std::move(first));

  Action newest = learning_row("learn/newest", "Newest snapshot");
  newest.keys = {plain(Key::end)};
  newest.sheet_text = "In Learn: first, newest snapshot";
  newest.command = [](const ActionContext& now) {
    return seek(now, now.pending.learning->snapshots().size() - 1);
  };
  rows.push_back(std::move(newest));

  Action again = learning_row("learn/restart", "Start again");
  again.about = "Begins the same run at step 0";
  again.command = always(RestartLearning{});
  rows.push_back(std::move(again));

  Action ablate = learning_row("learn/ablate", "Ablate or enable the selected head");
  ablate.about = "The network learns on without it; undo returns to the step before";
  ablate.keys = {plain(Key::x)};
  ablate.sheet_text = "In Learn: ablate or enable the selected head";
  ablate.command = [](const ActionContext& now) {
    const auto [layer, head] = now.pending.learning_look->head;
    return CommandList{ToggleLearnedHead{layer, head}};
  };
  rows.push_back(std::move(ablate));

  Action keep = learning_row("learn/keep", "Snapshot as A");
  keep.about = "Keeps the displayed step, to compare other steps with";
  keep.keys = {plain(Key::k)};
  keep.sheet_text = "In Learn: take the displayed step as A";
  keep.command = always(KeepLearned{});
  rows.push_back(std::move(keep));

  Action from_here = learning_row("learn/from_here", "Learn on from here");
  from_here.about = "Drops the steps after the displayed one; undo brings them back";
  from_here.disabled_reason = [](const ActionContext& now) -> std::string {
    if (!has_run(now)) return "nothing is being learned";
    return is_at_newest(now) ? "this is the newest step" : "";
  };
  from_here.command = [](const ActionContext& now) {
    return CommandList{LearnOnFrom{now.pending.learning->snapshots()[shown(now)]->step}};
  };
  rows.push_back(std::move(from_here));

  Action edits = learning_row("learn/with_edits", "Learn on with its edits");
  edits.part = 1;
  edits.about =
      "Takes the numbers edited, and the heads ablated, in the model that was opened from the run into the run";
  edits.disabled_reason = unless([](const ActionContext& now) { return has_run(now) && now.document.of_run; },
                                 "no step of the run is open as a model");
  edits.command = always(LearnWithEdits{});

  Action open = learning_row("learn/open", "Open as model");
  open.part = 1;
  open.about = "Makes the displayed step the whole model of Layers, Stages and the next token";
  open.command = always(OpenLearned{});
  rows.push_back(std::move(open));
  rows.push_back(std::move(edits));

  Action out = learning_row("learn/export", "Export the run…");
  out.part = 1;
  out.about = "Writes a folder that transformers and attnscope open, as attnscope learn --out does";
  out.command = show_dialog(Dialog::export_run);
  rows.push_back(std::move(out));
}

void add_learning_tasks(ActionRows& rows) {
  for (const core::training::Task& task : core::training::tasks())
    rows.push_back({.id = std::string("learn/task/") + task.name,
                    .title = task.name,
                    .menu = "File/New/Watch it learn",
                    .about = task.about,
                    .shows_about = true,
                    .command = always(SetLearning{task.name, "", task.setup})});
}

}  // namespace app::rows
