#include "app/session/store.hpp"

#include <fmt/core.h>
#include <algorithm>

#include "app/session/navigation.hpp"
#include "app/session/remembered.hpp"
#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/editing/presets.hpp"
#include "core/system/fetching.hpp"

namespace app {

namespace editing = core::editing;

Store::Store(std::function<std::uint64_t()> free, double max_immediate_ms,
             std::function<void()> before_computing, SideTasks::ListFunction list, bool has_threads)
    : free_memory_(std::move(free)),
      jobs_(has_threads),
      live_(jobs_, editing::default_preset().make(), max_immediate_ms, std::move(before_computing)),
      side_tasks_(jobs_, std::move(list)) {
  jobs_.set_failure_handler([this](const Failure& failure) { say(failure.words, true); });
  const editing::Preset& preset = editing::default_preset();
  replace_document(document_of(preset.make(), {preset.title, preset.name}));
  update();
}

void Store::record_to(std::function<void(const std::string& line)> record) {
  for (const Command& field : fields_of(view_)) record(to_text(field));
  for (const auto& [lesson, progress] : persistent_state().progress)
    record(to_text(SetLessonProgress{lesson, progress.step, progress.done}));
  record_ = std::move(record);
}

void Store::dispatch(const Command& command) {
  if (record_) record_(to_text(command));
  perform(command);
}

void Store::perform(const Command& command) {
  attempt("what was asked for", [&] { command.visit([this](const auto& c) { handle(c); }); });
  tidy();
}

void Store::attempt(const std::string& what, const std::function<void()>& act) {
  try {
    act();
  } catch (...) {
    say(current_failure(what).words, true);
  }
}

void Store::update() {
  if (record_) record_(update_line);
  jobs_.deliver();
  continue_if_written();
  handle_pending_result();
  tidy();
  read_start_page();
  attempt("what the model reads", [this] { follow_full_model(); });
  attempt("the stages of this model; the pictures are of the previous one",
          [this] { live_.follow(document_.model, view_.look.sequence); });
  attempt("the gradients", [this] { live_gradient_.follow(live_, view_.look); });
  attempt("this step of the lesson", [this] { assess_lesson(); });
  attempt("the dropout laboratory", [this] { run_laboratory(); });
  attempt("the comparison", [this] { run_comparison(); });
  attempt("the training", [this] { follow_learning(); });
  if (quit_) return;  // discarded work is not recorded again
  attempt("the record of edits", [this] { recorder_.follow(work_to_record()); });
  find_leftovers();
  report_lost_model();
}

bool Store::find_leftovers() {
  bool found = false;
  attempt("what an earlier window has left", [&] {
    found = recorder_.find_more_leftovers();
    if (found && view_.forms.dialog == Dialog::recovery) show_leftovers();
  });
  return found;
}

bool Store::report_lost_model() {
  if (!document_.is_attached() || document_.full_model->model == lost_model_) return false;
  const std::string why = document_.full_model->model->lost();
  if (why.empty()) return false;
  lost_model_ = document_.full_model->model;
  say(why + "; what is displayed stays", true);
  return true;
}

/// Begins after the first frame, which does not wait for it.
void Store::read_start_page() {
  if (!view_.forms.start_page)
    return start_pictures_.clear();  // the files may change until it is shown again
  const auto [lesson, step] = suggested_lesson(&lessons_.progress);
  const auto n = static_cast<std::ptrdiff_t>(std::min(recent_.size(), max_start_files));
  const StartPicturesKey key{{recent_.begin(), recent_.begin() + n}, lesson->name, step};
  if (start_pictures_.needs(key, Schedule::debounced))
    start_pictures_.begin(key, Schedule::debounced, [key](const core::StopToken& progress) {
      return read_start_pictures(key, progress);
    });
  const StartRun before = start_run_.value() ? *start_run_.value() : StartRun();
  if (before.heads.empty() && start_run_.needs(before.run, Schedule::debounced))
    start_run_.begin(before.run, Schedule::debounced,
                     [before](const core::StopToken& progress) { return train_start_run(before, progress); });
  if (view_.forms.models.empty() || !core::system::is_here(view_.forms.models.front())) return;
  const std::filesystem::path& path = view_.forms.models.front();
  if (start_model_.needs(path, Schedule::debounced))
    start_model_.begin(path, Schedule::debounced, [path](const core::StopToken& progress) {
      return std::make_shared<const StartModel>(read_start_model(path, progress));
    });
}

ModelView Store::shown_view() const {
  ModelView view = view_;  // without the forms, which may hold the names of a large folder
  if (is_up_to_date()) return view;
  view.look.sequence = live_.sequence();
  clamp_view(view, live_.model());
  return view;
}

DocumentState Store::document() const {
  if (is_in_learn()) {
    DocumentState of_run = learning_.state(recent_);
    of_run.of_run = document_.origin.is_learned;
    return of_run;
  }
  const auto& [title, preset, path, stamp, source, import_report, notes, is_learned] = document_.origin;
  const Document& own = lessons_.own(document_);
  return {.title = title,
          .path = own.origin.path,
          .preset = preset,
          .modified = own.is_modified(),
          .is_preset = !preset.empty() && document_.model == document_.first,
          .steps = {.can_undo = document_.history.can_undo(),
                    .can_redo = document_.history.can_redo(),
                    .undo_words = document_.history.undo_description(),
                    .redo_words = document_.history.redo_description(),
                    .n_forgotten = document_.history.n_forgotten()},
          .recent = recent_,
          .of_tensors = source != nullptr,
          .layers = source ? source->layers : std::vector<std::string>(),
          .layer = source ? source->layer : 0,
          .import_report = import_report,
          .notes = notes,
          .of_run = is_learned};
}

void Store::apply_settings(PersistentState kept, const std::map<std::string, std::string>& settings) {
  if (!settings.empty()) app::apply_settings(settings, view_);
  clamp_view_to_model();
  recent_ = std::move(kept.recent);
  lessons_.progress = std::move(kept.progress);
  view_.forms.models = std::move(kept.models);
  if (!kept.journals.empty()) record_in(kept.journals);
}

void Store::handle(const ApplyEdit& command) {
  view_.forms.start_page = false;
  if (document_.full_model) require_layer_of_text();
  core::attention::Model after = editing::apply(document_.model, command.edit);
  if (after == document_.model || !may_use_memory(after, command)) return;
  std::shared_ptr<FullModelState> full_model;
  if (document_.full_model) {
    full_model = std::make_shared<FullModelState>(*document_.full_model);
    std::string words = editing::describe(command.edit);
    if (const auto* cell = std::get_if<editing::SetCell>(&command.edit))
      if (const auto* before = editing::find_matrix(full_model->unedited, cell->place))
        words += fmt::format(": {} → {}", core::text::fixed(before->at(cell->row, cell->column), 4),
                             core::text::fixed(cell->value, 4));
    full_model->experiment = core::experiment::with_layer(
        std::move(full_model->experiment), full_model->layer, full_model->unedited, after, words);
    full_model->unedited.heads_off = after.heads_off;
    if (full_model->experiment.layers.contains(full_model->layer) &&
        full_model->experiment.has_patched_attention(full_model->layer))
      throw core::Error(fmt::format("Layer {} cannot be edited while a part of its attention is patched.",
                                    full_model->layer));
    if (const std::string why = full_model->model->not_editable_reason(full_model->layer);
        !why.empty() && full_model->experiment.layers.contains(full_model->layer))
      throw core::Error(fmt::format("Layer {} cannot be edited: {}.", full_model->layer, why));
  }
  record_step(editing::target(command.edit), editing::describe(command.edit));
  document_.model = std::move(after);
  document_.full_model = std::move(full_model);
}

void Store::record_step(const std::string& target, const std::string& words) {
  auto& history = document_.history;
  const std::size_t before = history.n_forgotten();
  history.record(work(), target, words);
  message_ = {};
  if (before == 0 && history.n_forgotten() > 0)  // said once, and again where undo ends
    say(fmt::format("Undo keeps {} MiB; the oldest steps are dropped from now on.",
                    history.byte_budget() >> 20));
}

void Store::handle(const StartTour&) {
  start_tour(view_, document_.model);
}

void Store::handle(const AdvanceTour&) {
  if (view_.selection.tour && view_.selection.tour->step + 1 >= tour_steps().size())
    return handle(LeaveTour{});
  advance_tour(view_, document_.model);
}

void Store::handle(const LeaveTour&) {
  if (!view_.selection.tour) return;
  const auto first = view_.selection.tour->first;
  leave_tour(view_);
  if (first && !document_.full_model && !(*first == document_.model))
    handle(ApplyEdit{editing::ReplaceModel{*first, "tour changes"}});
}

void Store::handle(const EndGesture&) {
  learning_.end_gesture();
  document_.history.end_gesture();
}

void Store::handle(const Undo&) {
  if (is_in_learn()) {
    const auto& of_run = learning_.document().history;
    if (!of_run.can_undo()) return say("There is nothing to undo: steps of training are no edits.");
    const std::string words = of_run.undo_description();
    learning_.undo();
    return show_run(fmt::format("Undone: {}; this is step {}", words, learning_.run()->n_steps()), false);
  }
  auto& history = document_.history;
  if (!history.can_undo()) {
    std::string words = nothing_to_undo(document().steps) + ".";
    words.front() = 'T';
    return say(words);
  }
  const std::string words = history.undo_description();
  restore_state(history.undo(work()));
  if (lessons_.is_under_way() && words == lesson_undo_name)
    return handle(LeaveLesson{});  // the undone step is the lesson itself
  say("Undone: " + words);
}

void Store::handle(const Redo&) {
  if (is_in_learn()) {
    const auto& of_run = learning_.document().history;
    if (!of_run.can_redo()) return say("There is nothing to redo.");
    const std::string words = of_run.redo_description();
    learning_.redo();
    return show_run(fmt::format("Done again: {}; this is step {}", words, learning_.run()->n_steps()), false);
  }
  auto& history = document_.history;
  if (!history.can_redo()) return say("There is nothing to redo.");
  const std::string words = history.redo_description();
  restore_state(history.redo(work()));
  say("Done again: " + words);
}

void Store::handle(const LoadPreset& command) {
  const editing::Preset* preset = editing::find_preset(command.name);
  if (!preset) throw core::Error("preset " + command.name + ": there is no such preset");
  leave_lesson();
  if (!may_discard_work(command)) return;
  replace_document(document_of(preset->make(), {preset->title, preset->name}));
  view_.look.tab = Tab::stages;  // shows everything that a preset is about
  view_.look.large.reset();
  say(std::string(preset->title) + ": " + preset->about);
}

void Store::handle(const ShowDialog& command) {
  if (command.dialog == Dialog::save_as) require_saveable();
  if (view_.forms.dialog == Dialog::writing) handle(CancelQuestion{});
  const Origin& origin = document_.origin;
  if (command.dialog == Dialog::import_tensors) {
    if (origin.source) choose_from(origin.source->tensors);
    return;
  }
  if (command.dialog == Dialog::none && view_.forms.dialog != Dialog::none) handle(CancelReading{});
  view_.forms.dialog = command.dialog;
  if (command.dialog == Dialog::none) cancel_deferred();
  const bool is_opening = chooses_file(command.dialog);
  if (!is_opening && command.dialog != Dialog::save_as && !exports(command.dialog)) return;
  Browser& browser = view_.forms.browser;
  if (const auto& path = lessons_.own(document_).origin.path; browser.directory.empty() && path)
    browser.directory = path->parent_path();
  if (view_.forms.in_browser)
    browser.directory.clear();
  else
    side_tasks_.list(browser, browser.directory);
  if (command.dialog == Dialog::save_as)
    browser.name = origin.path ? origin.path->filename().string()
                               : (origin.preset.empty() ? "attention" : origin.preset) + ".json";
  if (command.dialog == Dialog::save_as && is_in_learn())
    browser.name = learning_.document().path ? learning_.document().path->filename().string()
                                             : std::string(learning_.run()->data().task().name) + "-run.json";
  if (is_opening || exports(command.dialog)) browser.name.clear();
  if (!exports(command.dialog)) view_.forms.typed = TypedField{"browser/name", browser.name, true, true};
  message_ = {};  // the dialog shows its own errors, not earlier ones
}

void Store::handle(const BrowseTo& command) {
  const bool opens = view_.forms.dialog == Dialog::open;  // the chosen file is not in this folder
  if (opens) view_.forms.browser.name.clear();
  side_tasks_.list(view_.forms.browser, command.directory);
}

void Store::handle(const CopyText& command) {
  clipboard_ = command.text;
  say("Copied");
}

void Store::handle(const ShowMessage& command) {
  say(command.text, command.is_error);
}

void Store::handle(const Quit& command) {
  leave_lesson();
  if (!may_discard_work(command) || !may_discard_run(command)) return;
  if (is_writing()) return continue_when_written(command);
  recorder_.forget();
  quit_ = true;
}

void Store::handle(const DiscardAndContinue&) {
  if (view_.forms.dialog == Dialog::writing) return writer_.exporting.stop(true);
  view_.forms.dialog = Dialog::none;
  if (!deferred_.next) return;
  if (is_in_learn())
    deferred_.discardable_run = learning_.run();
  else
    deferred_.discardable_model = document_.model;
  continue_deferred();
  if (!deferred_.next) deferred_.discardable_model.reset(), deferred_.discardable_run.reset();
}

void Store::handle(const AllowMemory&) {
  deferred_.granted_bytes = std::max(deferred_.granted_bytes, deferred_.requested_bytes);
  view_.forms.dialog = Dialog::none;
  continue_deferred();
}

void Store::handle(const CancelQuestion&) {
  cancel_deferred();
  view_.forms.dialog = Dialog::none;
}

bool Store::may_discard_work(const Command& command) {
  if (writer_.saving.is_busy()) {  // the saved state must become part of this document, not of the next
    continue_when_written(command);
    return false;
  }
  if (!document_.is_modified() || deferred_.discardable_model == document_.model) return true;
  wait_for(command, false);
  if (view_.look.tab == Tab::learn) view_.look.tab = document_.full_model ? Tab::layers : Tab::stages;
  view_.forms.dialog = Dialog::unsaved_work;
  return false;
}

bool Store::may_discard_run(const Command& command) {
  if (!learning_.is_modified() || deferred_.discardable_run == learning_.run()) return true;
  wait_for(command, false);
  view_.learning.plays = false;
  view_.look.tab = Tab::learn;  // so that the question, and an answer, are about the run
  view_.forms.dialog = Dialog::unsaved_work;
  return false;
}

void Store::continue_when_written(const Command& command) {
  wait_for(command, true);
  if (!command.get_if<Quit>()) return;
  view_.forms.question =
      writer_.path().filename().string() + " is being written. attnscope quits when that is done.";
  view_.forms.dialog = Dialog::writing;
}

bool Store::is_quitting() const {
  return deferred_.next && deferred_.next->get_if<Quit>();
}

bool Store::may_use_memory(const core::attention::Model& model, const Command& command) {
  constexpr std::uint64_t little = std::uint64_t{64} << 20;
  if (memory_need(model, 0).bytes <= little) return true;  // without asking the system
  const MemoryNeed need = memory_need(model, free_memory_());
  if (need.is_too_much()) throw core::Error(need.words());
  if (need.bytes <= std::max(max_unconfirmed_bytes, deferred_.granted_bytes)) return true;
  deferred_.requested_bytes = need.bytes;
  wait_for(command, false);
  view_.forms.question = need.words() + ".";
  view_.forms.dialog = Dialog::memory;
  return false;
}

void Store::replace_document(Document document) {
  view_.forms.start_page = false;
  document_ = std::move(document);
  model_reading_.clear();
  cancel_deferred();
  unpin_cell(view_);
  view_.selection.hovered.reset();
  view_.selection.cursor.reset();
  if (view_.look.tab == Tab::learn) view_.look.tab = Tab::stages;  // it shows no document
  view_.look.sequence = view_.look.head = 0;
  view_.look.tokens.pinned_query.reset();
  view_.look.tokens.silent_heads.clear();
  view_.look.positions = {};
  view_.look.compared.reference = 0;
  references_.clear();
  view_.forms.sentence = {};
  view_.forms.scan = {};
  view_.forms.submitted.reset();
  view_.look.gradient.of.reset();
  view_.forms.dialog = Dialog::none;
}

void Store::remember(const std::filesystem::path& path) {
  if (const auto kept = absolute_path(path)) recent_ = with_recent(std::move(recent_), *kept);
}

void Store::clamp_view_to_model() {
  view_.look.compared.reference =
      references_.empty() ? 0 : std::min(view_.look.compared.reference, references_.size() - 1);
  clamp_view(view_, document_.model);
  if (view_.look.tab == Tab::layers && !document_.full_model) view_.look.tab = Tab::stages;
  if (view_.look.tab == Tab::learn && !learning_.is_open()) view_.look.tab = Tab::stages;
}

void Store::handle(const SetLessonProgress& command) {
  const core::lessons::Lesson* lesson = core::lessons::find_lesson(command.lesson);
  if (!lesson || command.step >= lesson->steps.size())
    throw core::Error("lesson " + command.lesson + ": there is no such step");
  lessons_.progress[command.lesson] = {command.step, command.done};
}

PersistentState Store::persistent_state() const {
  PersistentState kept{recent_, lessons_.progress, {}, {}};
  std::erase_if(kept.progress, [](const auto& each) { return !core::lessons::find_lesson(each.first); });
  return kept;
}

void Store::handle(const StartLesson& command) {
  start_lesson(command.name, {});
}

void Store::start_lesson(const std::string& name, const LessonWork& lesson_work) {
  const core::lessons::Lesson* lesson = lessons_.find(name);
  if (!lesson) throw core::Error("lesson " + name + ": there is no such lesson");
  start_lesson(*lesson, lesson_work);
}

void Store::start_lesson(const core::lessons::Lesson& lesson, const LessonWork& lesson_work) {
  if (!lesson.model.empty()) return start_lesson_with_model(lesson, lesson_work);
  start(lesson, nullptr, lesson_work);
}

void Store::start(const core::lessons::Lesson& lesson, const core::transformer::ModelRef& model,
                  const LessonWork& lesson_work) {
  leave_lesson();
  lessons_.start(lesson, lesson_work.step, model, document_, view_,
                 document_.full_model ? model_reading_.saved_readings() : std::nullopt);
  if (lesson.trains()) {
    own_run_ = learning_.exchange({.is_lesson = true});
    begin_lesson_run();
  }
  if (model) model_reading_.set_readings(*document_.full_model, lessons_.first_readings());
  cancel_deferred();
  view_.forms.dialog = Dialog::none;
  message_ = {};
  restore_lesson_work(lesson_work);
  if (std::ranges::count(recorder_.leftovers(), lesson_work.journal)) recorder_.restore(lesson_work.journal);
  say(lesson_work.words);
}

void Store::begin_lesson_run() {
  const auto& start = lesson()->shown().start;
  learning_.exchange({.is_lesson = true});
  learning_.set(start.task, "", start.setup);
  learning_.add_steps(start.n_steps);
}

void Store::assess_lesson() {
  if (lesson() && lesson()->lesson->trains()) return lessons_.assess(learning_.run());
  if (!document_.full_model) {
    if (is_up_to_date()) lessons_.assess(document_, live_, view_.look.sequence);
  } else if (model_reading_.readings() && model_reading_.matches(*document_.full_model)) {
    lessons_.assess(model_reading_.readings()->now, model_reading_.readings()->before, *document_.full_model,
                    view_);
  }
}

void Store::handle(const StepLesson& command) {
  if (!lesson()) return;
  const std::size_t last = lesson()->lesson->steps.size() - 1, now = lesson()->step;
  if (command.by > 0 && now == last) return say("That was the last step. Esc brings your own work back.");
  if (command.by < 0 && now == 0) return say("This is the first step.");
  lessons_.begin(command.by > 0 ? now + 1 : command.by < 0 ? now - 1 : now, document_, view_);
  message_ = {};
  if (lesson()->lesson->trains()) begin_lesson_run();
}

void Store::handle(const LeaveLesson&) {
  if (!lesson()) return;
  leave_lesson();
  say("Your own work is back.");
}

void Store::leave_lesson() {
  if (!lesson()) return;
  if (own_run_) learning_.exchange(*std::exchange(own_run_, std::nullopt));
  if (auto own = lessons_.leave(document_, view_)) model_reading_.restore_readings(std::move(*own));
}

void Store::run_laboratory() {
  if (view_.look.tab != Tab::laboratory) return mask_sampler_.stop();
  mask_sampler_.follow(live_, std::min(view_.look.head, live_.model().n_heads - 1),
                       view_.look.laboratory_masks);
}

namespace {

bool is_question_dialog(Dialog dialog) {
  return dialog == Dialog::unsaved_work || dialog == Dialog::memory || dialog == Dialog::question ||
         dialog == Dialog::save_as;  // asks for a name before another command continues
}

bool has_browser(Dialog dialog) {
  return dialog == Dialog::open || dialog == Dialog::open_reference || dialog == Dialog::open_tensors ||
         dialog == Dialog::open_override || dialog == Dialog::open_texts || dialog == Dialog::save_as ||
         exports(dialog);
}

}  // namespace

void Store::wait_for(const Command& next, bool is_for_writing) {
  if (!next.get_if<FinishOpening>()) drop_opened();
  deferred_.next = next;
  deferred_.is_for_writing = is_for_writing;
}

void Store::drop_opened() {
  if (opened_) jobs_.destroy_async(std::exchange(opened_, std::nullopt));
}

void Store::continue_deferred() {
  if (deferred_.next) perform(*std::exchange(deferred_.next, std::nullopt));
}

void Store::cancel_deferred() {
  if (deferred_.next && deferred_.next->get_if<FinishOpening>()) drop_opened();
  deferred_.next.reset();
  deferred_.discardable_model.reset();
  deferred_.discardable_run.reset();
  deferred_.is_for_writing = false;
}

void Store::deliver_when_answered(Jobs::Delivery read_result) {
  if (!read_result) return;
  if (!deferred_.next) return read_result();
  deferred_.read_result = std::move(read_result);
}

void Store::handle_pending_result() {
  if (deferred_.next || !deferred_.read_result) return;
  attempt("what was read", std::exchange(deferred_.read_result, {}));
}

void Store::close(Dialog dialog) {
  if (view_.forms.dialog == dialog) view_.forms.dialog = Dialog::none;
}

void Store::tidy() {
  clamp_view_to_model();
  // After any other question, work left by an earlier window still needs an answer.
  if (view_.forms.dialog == Dialog::none && !recorder_.leftovers().empty() && !reader_.is_busy())
    show_leftovers();
  const Dialog open = view_.forms.dialog;
  if (deferred_.next && !deferred_.is_for_writing && !is_question_dialog(open)) cancel_deferred();
  if (choosing_ && open != Dialog::import_tensors)
    jobs_.destroy_async(std::exchange(choosing_, std::nullopt));
  if (!view_.forms.browser.entries.empty() && !has_browser(open)) view_.forms.browser.entries = {};
  if (!chooses_file(open)) view_.forms.browser.decimal_comma = false;
}

void Store::read_for_document(const std::filesystem::path& path, const Jobs::Job& reading) {
  const auto layer = [this] { return document_.full_model ? document_.full_model->layer : 0; };
  read_in_background(
      path,
      [this, path, reading, layer, of = document_.identity,
       of_layer = layer()](const core::StopToken& progress) -> Jobs::Delivery {
        return [this, path, layer, of, of_layer, delivery = reading(progress)] {
          if (document_.identity != of || layer() != of_layer)
            throw core::Error(path.string() +
                              ": what it was read for is no longer there, nothing was changed");
          delivery();
        };
      });
}

}  // namespace app
