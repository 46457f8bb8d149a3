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

ActionRow add_learning_row(ActionRows& rows, const char* id, const char* title, int part = 0) {
  return add(rows, id, title, learning_menu, 1, part)
      .keys_apply(in_learn)
      .only_if(has_run, "nothing is being learned");
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
  add(rows, "tab/learn", "Learn", "View")
      .about("A small transformer that learns a task")
      .keys(ctrl(Key::digit_7))
      .sheet_text("Learn: the run of training")
      .only_if(has_run, "nothing is being learned")
      .does(set<&Forms::start_page>(false), set<&Look::tab>(Tab::learn))
      .checked([](const ActionContext& now) { return now.displayed.look.tab == Tab::learn; });
  if (!has_run(s)) rows.back().section = std::exchange(rows.back().menu, {});  // in the key sheet alone
  add_learning_row(rows, "learn/play", "Play or pause")
      .about("Trains as long as Learn is displayed")
      .keys(plain(Key::space))
      .sheet_text("In Learn: play, pause")
      .command([](const ActionContext& now) {
        return CommandList{set<&LearningLook::shown>(std::nullopt),
                           set<&LearningLook::plays>(!now.pending.learning_look->plays),
                           set<&Look::tab>(Tab::learn)};
      })
      .checked([](const ActionContext& now) {
        return now.pending.learning_look && now.pending.learning_look->plays;
      });
  add_learning_row(rows, "learn/back", "Previous snapshot")
      .keys(plain(Key::left))
      .keys_apply(in_learn_outside_lessons)
      .sheet_text("In Learn: previous snapshot, next one or one step")
      .disabled_reason(unless_at_start("this is the first snapshot"))
      .command([](const ActionContext& now) { return seek(now, shown(now) - 1); });
  add_learning_row(rows, "learn/step", "One step")
      .about("The next snapshot or, at the newest one, one batch of training")
      .keys(plain(Key::right))
      .keys_apply(in_learn_outside_lessons)
      .sheet_text("In Learn: previous snapshot, next one or one step")
      .command([](const ActionContext& now) {
        if (!is_at_newest(now)) return seek(now, shown(now) + 1);
        return CommandList{set<&LearningLook::plays>(false), StepLearning{1}};
      });
  add_learning_row(rows, "learn/first", "First snapshot")
      .keys(plain(Key::home))
      .sheet_text("In Learn: first, newest snapshot")
      .disabled_reason(unless_at_start("this is the first snapshot"))
      .command([](const ActionContext& now) { return seek(now, 0); });
  add_learning_row(rows, "learn/newest", "Newest snapshot")
      .keys(plain(Key::end))
      .sheet_text("In Learn: first, newest snapshot")
      .command(
          [](const ActionContext& now) { return seek(now, now.pending.learning->snapshots().size() - 1); });
  add_learning_row(rows, "learn/restart", "Start again")
      .about("Begins the same run at step 0")
      .does(RestartLearning{});
  add_learning_row(rows, "learn/ablate", "Ablate or enable the selected head")
      .about("The network learns on without it; undo returns to the step before")
      .keys(plain(Key::x))
      .sheet_text("In Learn: ablate or enable the selected head")
      .command([](const ActionContext& now) {
        const auto [layer, head] = now.pending.learning_look->head;
        return ToggleLearnedHead{layer, head};
      });
  add_learning_row(rows, "learn/keep", "Snapshot as A")
      .about("Keeps the displayed step, to compare other steps with")
      .keys(plain(Key::k))
      .sheet_text("In Learn: take the displayed step as A")
      .does(KeepLearned{});
  add_learning_row(rows, "learn/from_here", "Learn on from here")
      .about("Drops the steps after the displayed one; undo brings them back")
      .disabled_reason([](const ActionContext& now) -> std::string {
        if (!has_run(now)) return "nothing is being learned";
        return is_at_newest(now) ? "this is the newest step" : "";
      })
      .command([](const ActionContext& now) {
        return LearnOnFrom{now.pending.learning->snapshots()[shown(now)]->step};
      });
  add_learning_row(rows, "learn/open", "Open as model", 1)
      .about("Makes the displayed step the whole model of Layers, Stages and the next token")
      .does(OpenLearned{});
  add_learning_row(rows, "learn/with_edits", "Learn on with its edits", 1)
      .about(
          "Takes the numbers edited, and the heads ablated, in the model that was opened from the run into the run")
      .only_if([](const ActionContext& now) { return has_run(now) && now.document.of_run; },
               "no step of the run is open as a model")
      .does(LearnWithEdits{});
  add_learning_row(rows, "learn/export", "Export the run…", 1)
      .about("Writes a folder that transformers and attnscope open, as attnscope learn --out does")
      .does(ShowDialog{Dialog::export_run});
}

void add_learning_tasks(ActionRows& rows) {
  for (const core::training::Task& task : core::training::tasks())
    add(rows, std::string("learn/task/") + task.name, task.name, "File/New/Watch it learn")
        .about(task.about)
        .shows_about()
        .does(SetLearning{task.name, "", task.setup});
}

}  // namespace app::rows
