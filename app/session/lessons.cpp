#include "app/session/lessons.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <utility>

#include "app/session/opening.hpp"
#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/stages.hpp"

namespace app {

using core::text::consume_unsigned;

std::string progress_text(const LessonProgress& progress) {
  std::string text = std::to_string(progress.step) + " ";
  for (const std::size_t step : progress.done) text += std::to_string(step) + ",";
  if (!progress.done.empty()) text.pop_back();
  return text;
}

std::optional<LessonProgress> parse_progress(std::string_view text, std::size_t n_steps) {
  LessonProgress progress;
  const auto step = consume_unsigned(text);
  if (!step || *step >= n_steps || !(text.empty() || text.starts_with(' '))) return std::nullopt;
  progress.step = *step;
  if (text == " ") return progress;
  while (!text.empty()) {
    text.remove_prefix(1);  // the space or a comma
    const auto done = consume_unsigned(text);
    if (!done || *done >= n_steps || !(text.empty() || text.starts_with(','))) return std::nullopt;
    progress.done.insert(*done);
  }
  return progress;
}

const LessonProgress* progress_of(const std::map<std::string, LessonProgress>* progress,
                                  const std::string& lesson) {
  if (!progress) return nullptr;
  const auto known = progress->find(lesson);
  return known == progress->end() ? nullptr : &known->second;
}

const core::lessons::Lesson* unfinished_lesson(const std::map<std::string, LessonProgress>* progress) {
  for (const auto& lesson : core::lessons::lessons())
    if (const auto* known = progress_of(progress, lesson.name);
        known && known->step > 0 && known->step + 1 < lesson.steps.size())
      return &lesson;
  return nullptr;
}

namespace {

using core::lessons::Lesson;
using core::lessons::LessonStep;

/// Unfolds the stages that a step points at, and shows the strip without zoom.
void unfold_focus(View& view, const LessonStep& step) {
  for (const std::string_view name : step.focus) {
    constexpr std::string_view strip = "strip/";
    if (!name.starts_with(strip)) continue;
    if (const auto* stage = core::attention::find_stage(name.substr(strip.size())))
      view.look.folded.erase(stage->stage);
    view.look.large.reset();
    view.look.zoomed.clear();
  }
}

/// Restores the user's choice of stages, head, cell and layer, not the settings of the window as a whole.
void restore_view_choices(View& view, const View& before) {
  view.look.tab = before.look.tab;
  view.look.sequence = before.look.sequence, view.look.head = before.look.head;
  view.look.heads_stage = before.look.heads_stage;
  view.look.tokens.pinned_query = before.look.tokens.pinned_query;
  view.look.folded = before.look.folded;
  view.look.large = before.look.large;
  view.look.positions = before.look.positions;
  view.look.edited = before.look.edited;
  view.selection.pinned = before.selection.pinned;
  view.selection.cursor.reset();
  view.forms.typed.reset();
  view.layers = before.layers;
  view.learning = before.learning;
  view.learning.plays = false;
}

}  // namespace

const Lesson& Lessons::add(Lesson lesson) {
  progress.erase(lesson.name);  // of an earlier text of the file
  return *added_.emplace_back(std::make_unique<const Lesson>(std::move(lesson)));
}

const Lesson* Lessons::find(const std::string& name) const {
  for (auto added = added_.rbegin(); added != added_.rend(); ++added)
    if ((*added)->name == name) return added->get();
  return core::lessons::find_lesson(name);
}

void Lessons::start(const Lesson& lesson, std::optional<std::size_t> step,
                    const core::transformer::ModelRef& model, Document& document, View& view,
                    std::optional<FullModelReading::SavedReadings> own_reading) {
  const std::size_t n_steps = lesson.steps.size();
  if (step && *step >= n_steps)
    throw core::Error(
        fmt::format("The lesson {} has {} steps and no step {} any more.", lesson.title, n_steps, *step + 1));
  active_ = ActiveLesson();
  active_->own_reading = std::move(own_reading);
  active_->model = model;
  active_->own = std::exchange(document, Document());
  active_->own_view = view;
  active_->state.lesson = &lesson;
  const LessonProgress& known = progress[lesson.name];
  active_->state.done = known.done;
  const bool finished = known.done.size() == n_steps;
  try {
    begin(step.value_or(finished ? 0 : known.step), document, view);
  } catch (...) {
    document = std::move(active_->own);
    active_.reset();
    throw;
  }
}

void Lessons::begin(std::size_t step, Document& document, View& view) {
  ActiveLesson& l = *active_;
  const LessonStep& shown = l.state.lesson->steps[step];
  const Origin origin{std::string("lesson: ") + l.state.lesson->title};
  std::optional<OpenedModel> opened;
  std::size_t head = 0;
  if (!l.state.lesson->model.empty()) {
    core::experiment::Experiment start = core::lessons::experiment_at_start(shown, l.model.get());
    if (document.full_model && start.layer == 0) {
      // The head of the last step stays, unless it ends this one.
      const std::size_t layer = document.full_model->experiment.layer;
      if (!core::lessons::is_done(shown, core::lessons::WholeStepState{*l.model, *l.first.now, *l.first.now,
                                                                       layer, view.look.head}))
        start.layer = layer, head = view.look.head;
    }
    opened = read_full_model(l.model, start, l.model->description().path, core::StopToken());
    document = document_of(*opened, origin);
  } else {
    document = document_of(core::lessons::model_at_start(shown), origin);
  }
  l.first = opened ? BothReadings{opened->reading, opened->before} : BothReadings();
  l.first_run = l.assessed_run = nullptr;
  l.state.step = step;
  l.state.seen.clear();
  l.state.moved.clear();
  l.assessed = 0;
  l.assessed_full_model = {};
  progress[l.state.lesson->name] = {step, l.state.done};
  document.history.record({l.own.model, l.own.full_model}, "",
                          lesson_undo_name);  // undoing it restores the user's own work
  document.n_steps_saved = document.history.n_applied();
  document.history.end_gesture();
  restore_view_choices(view, {});
  if (opened) show_layers_view(view);
  if (l.state.lesson->trains()) view.look.tab = Tab::learn, view.learning = {};
  view.look.head = head;
  if (opened && shown.pins_token)  // also when another text makes another one lead
    view.layers.token = arma::index_max(arma::frowvec(opened->reading->logits.tail_rows(1)));
  view.look.folded = l.own_view.look.folded;
  unfold_focus(view, shown);
  view.selection.lesson = LessonPlace{l.state.lesson->name, step};
}

void Lessons::assess(const Document& document, const LiveTrace& live, std::size_t sequence) {
  if (!active_ || active_->assessed == live.version()) return;
  ActiveLesson& l = *active_;
  const core::attention::Model& start = document.first;  // of the step
  sequence = std::min(sequence, start.sequences.size() - 1);
  if (l.assessed == 0 || l.before_sequence != sequence) {
    l.before = core::attention::attend(start, sequence);
    l.before_sequence = sequence;
  }
  l.assessed = live.version();
  const core::lessons::StepState moment{start, l.before, live.model(), live.trace()};
  const LessonStep& step = l.state.shown();
  l.state.pictures = core::lessons::pictures(step.exhibit, moment);
  l.state.version = live.version();
  if (step.predict) l.state.moved = core::lessons::changed_cells(moment, *step.predict, 0);
  take(moment);
}

void Lessons::assess(const std::shared_ptr<const core::training::TrainingRun>& now) {
  if (!active_ || !now || active_->assessed_run == now) return;
  ActiveLesson& l = *active_;
  if (!l.first_run && now->n_steps() < l.state.shown().start.n_steps) return;  // it still begins
  if (!l.first_run) l.first_run = now;
  l.assessed_run = now;
  take(core::lessons::RunStepState{*l.first_run, *now});
}

void Lessons::assess(const ReadingRef& now, const ReadingRef& unedited, const FullModelState& full_model,
                     const View& view) {
  if (!active_) return;
  ActiveLesson& l = *active_;
  const std::size_t layer = full_model.experiment.layer, head = view.look.head;
  const auto pinned = full_model.layer == layer ? view.selection.pinned : std::nullopt;
  const std::string source = view.layers.shows_sources ? view.layers.source : "";
  const std::tuple seen{now, layer, head, pinned, source};
  if (std::exchange(l.assessed_full_model, seen) == seen) return;
  take(core::lessons::WholeStepState{*l.model, *l.first.now, *now, layer, head, unedited.get(), pinned,
                                     source});
}

template <class StepState>
void Lessons::take(const StepState& moment) {
  LessonState& state = active_->state;
  if (!core::lessons::is_done(state.shown(), moment)) return;
  state.seen = core::lessons::seen(state.shown(), moment);
  state.done.insert(state.step);
  progress[state.lesson->name].done = state.done;
}

std::optional<FullModelReading::SavedReadings> Lessons::leave(Document& document, View& view) {
  document = std::move(active_->own);
  // The first undo after a lesson then undoes none of the user's own edits. Steps that can be redone would be
  // lost.
  if (document.history.undo_description() != lesson_undo_name && !document.history.can_redo()) {
    document.history.record({document.model, document.full_model}, "", lesson_undo_name);
    ++document.n_steps_saved;  // which is no edit
  }
  document.history.end_gesture();
  restore_view_choices(view, active_->own_view);
  view.selection.lesson.reset();
  auto own_reading = std::move(active_->own_reading);
  active_.reset();
  return own_reading;
}

}  // namespace app
