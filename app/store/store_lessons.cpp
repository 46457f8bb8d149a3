// The part of the store that knows of lessons and of the dropout laboratory.
#include <algorithm>

#include "app/store/store.hpp"
#include "core/attention/attend.hpp"
#include "core/error.hpp"

namespace app {
namespace {

using core::lessons::Lesson;
using core::lessons::Moment;
using core::lessons::Step;

constexpr const char* the_lesson = "the lesson";  // a step of the history

/// What a step points at comes out of its fold, into a strip that shows all of it.
void unfold_focus(View& view, const Step& step) {
  for (const std::string_view name : step.focus) {
    constexpr std::string_view strip = "strip/";
    if (!name.starts_with(strip)) continue;
    if (const auto* stage = core::attention::find_stage(name.substr(strip.size())))
      view.look.folded.erase(stage->stage);
    view.look.large.reset();
    view.look.zoomed.clear();
  }
}

/// What a person chose to look at, without what belongs to the window as a whole.
void look_as_before(View& view, const View& before) {
  view.look.tab = before.look.tab;
  view.look.sequence = before.look.sequence, view.look.head = before.look.head;
  view.look.heads_stage = before.look.heads_stage;
  view.look.folded = before.look.folded;
  view.look.large = before.look.large;
  view.selection.pinned = before.selection.pinned;
  view.look.edited = before.look.edited;
}

}  // namespace

void Store::carry_out(const StartLesson& command) {
  const Lesson* lesson = core::lessons::find_lesson(command.name);
  if (!lesson) throw core::Error("lesson " + command.name + ": there is no such lesson");
  if (lesson_) leave_lesson();
  LessonUnderWay& next = lesson_.emplace();
  next.own_model = model_;
  next.own_history = std::move(history_);
  next.own_view = view_;
  next.state.lesson = lesson;
  next.state.done = progress_[lesson->name].done;
  view_.forms.dialog = Dialog::none;
  const bool finished = next.state.done.size() == lesson->steps().size();
  begin_step(finished ? 0 : progress_[lesson->name].step);
}

void Store::carry_out(const GoInLesson& command) {
  if (!lesson_) return;
  const std::size_t last = lesson_->state.lesson->steps().size() - 1, now = lesson_->state.step;
  if (command.by > 0 && now == last) return say("That was the last step. Esc brings your own work back.");
  if (command.by < 0 && now == 0) return say("This is the first step.");
  begin_step(command.by > 0 ? now + 1 : command.by < 0 ? now - 1 : now);
}

void Store::carry_out(const LeaveLesson&) {
  if (!lesson_) return;
  leave_lesson();
  say("Your own work is back.");
}

void Store::begin_step(std::size_t step) {
  LessonUnderWay& l = *lesson_;
  const Step& shown = l.state.lesson->steps()[step];
  l.state.step = step;
  l.state.seen.clear();
  l.start = shown.start();
  l.assessed = 0;
  progress_[l.state.lesson->name] = {step, l.state.done};
  history_ = core::editing::History();
  history_.record(l.own_model, "", the_lesson);  // undone, it brings the person's own work back
  history_.end_gesture();
  model_ = l.start;
  look_as_before(view_, {});
  view_.look.folded = l.own_view.look.folded;
  unfold_focus(view_, shown);
  view_.selection.cursor.reset();
  view_.forms.typed.reset();
  view_.selection.lesson = LessonPlace{l.state.lesson->name, step};
  keep_view_within_model();
  message_ = {};
}

void Store::assess_step() {
  if (!lesson_ || lesson_->assessed == version() || !shows_newest()) return;
  LessonUnderWay& l = *lesson_;
  const std::size_t sequence = std::min(view_.look.sequence, l.start.sequences.size() - 1);
  if (l.assessed == 0 || l.before_sequence != sequence) {
    l.before = core::attention::attend(l.start, sequence);
    l.before_sequence = sequence;
  }
  l.assessed = version();
  const Moment moment{l.start, l.before, shown_model(), trace()};
  const Step& step = l.state.shown();
  l.state.pictures = core::lessons::pictures(step.exhibit, moment);
  l.state.version = version();
  if (!step.done(moment)) return;
  l.state.seen = step.seen(moment);
  l.state.done.insert(l.state.step);
  progress_[l.state.lesson->name].done = l.state.done;
}

void Store::leave_lesson() {
  LessonUnderWay own = std::move(*lesson_);
  lesson_.reset();
  view_.selection.lesson.reset();
  model_ = std::move(own.own_model);
  history_ = std::move(own.own_history);
  // The first undo after a lesson takes nothing of one's own away.
  if (history_.undo_description() != the_lesson) history_.record(model_, "", the_lesson);
  history_.end_gesture();
  look_as_before(view_, own.own_view);
  view_.selection.cursor.reset();
  view_.forms.typed.reset();
  keep_view_within_model();
}

void Store::run_laboratory() {
  if (view_.look.tab != Tab::laboratory) return drawing_.stop();
  drawing_.follow(live_, std::min(view_.look.head, shown_model().n_heads - 1), view_.look.laboratory_masks);
}

}  // namespace app
