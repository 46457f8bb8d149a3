#include "app/store/store.hpp"

#include <algorithm>

#include "app/files/view_text.hpp"
#include "app/state/any_command.hpp"
#include "app/state/pinning.hpp"
#include "app/state/recent.hpp"
#include "app/state/view_bounds.hpp"
#include "app/work/failure.hpp"
#include "core/editing/presets.hpp"
#include "core/error.hpp"

namespace app {
namespace {

namespace editing = core::editing;

}  // namespace

Store::Store(std::function<std::uint64_t()> free, double at_once_ms, std::function<void()> before_computing)
    : free_memory_(std::move(free)),
      live_(jobs_, editing::default_preset().make(), at_once_ms, std::move(before_computing)) {
  jobs_.fail_by([this](const Failure& failure) { say(failure.words, true); });
  const editing::Preset& preset = editing::default_preset();
  start_with(preset.make(), {preset.title, preset.name, std::nullopt});
  message_ = {};
  settle();
}

void Store::dispatch(const Command& command) {
  attempt("what was asked for",
          [&] { std::visit([this](const auto& c) { carry_out(c); }, command.any().kinds()); });
}

void Store::attempt(const std::string& what, const std::function<void()>& act) {
  try {
    act();
  } catch (...) {
    say(failure_text(what), true);
  }
}

void Store::settle() {
  jobs_.deliver();
  leave_once_written();
  attempt("the list of files", [this] { list_files(); });
  attempt("the stages of this model; the pictures are of the one before",
          [this] { live_.follow(model_, view_.look.sequence); });
  attempt("this step of the lesson", [this] { assess_step(); });
  attempt("the dropout laboratory", [this] { run_laboratory(); });
  attempt("the comparison", [this] { run_comparison(); });
}

View Store::shown_view() const {
  View view = view_;
  if (shows_newest()) return view;
  view.look.sequence = live_.sequence();
  keep_within(view, live_.model());
  return view;
}

Document Store::document() const {
  const TensorSource* source = !lesson_ && origin_.source ? &*origin_.source : nullptr;
  return {.title = lesson_ ? std::string("lesson: ") + lesson_->state.lesson->title : origin_.title,
          .path = origin_.path,
          .preset = lesson_ ? "" : origin_.preset,
          .modified = !((lesson_ ? lesson_->own_model : model_) == saved_),
          .is_preset = !lesson_ && !origin_.preset.empty() && model_ == first_,
          .can_undo = history_.can_undo(),
          .can_redo = history_.can_redo(),
          .undo_words = history_.undo_description(),
          .redo_words = history_.redo_description(),
          .recent = recent_,
          .of_tensors = source != nullptr,
          .layers = source ? source->layers : std::vector<std::string>(),
          .layer = source ? source->layer : 0};
}

void Store::carry_out(const ApplyEdit& command) {
  core::attention::Model after = editing::apply(model_, command.edit);
  if (after == model_ || !may_take_memory(after, command)) return;
  history_.record(model_, editing::target(command.edit), editing::describe(command.edit));
  model_ = std::move(after);
  keep_view_within_model();
  message_ = {};
}

void Store::carry_out(const ChangeView& command) {
  command.change(view_);
  keep_view_within_model();
}

void Store::carry_out(const EndGesture&) {
  end_gesture();
}

void Store::carry_out(const Undo&) {
  if (!history_.can_undo()) return say("There is nothing to undo.");
  const std::string words = history_.undo_description();
  model_ = history_.undo(model_);
  if (lesson_ && !history_.can_undo())
    return carry_out(LeaveLesson{});  // what was undone is the lesson itself
  keep_view_within_model();
  say("Undone: " + words);
}

void Store::carry_out(const Redo&) {
  if (!history_.can_redo()) return say("There is nothing to redo.");
  const std::string words = history_.redo_description();
  model_ = history_.redo(model_);
  keep_view_within_model();
  say("Done again: " + words);
}

void Store::carry_out(const LoadPreset& command) {
  const editing::Preset* preset = editing::find_preset(command.name);
  if (!preset) throw core::Error("preset " + command.name + ": there is no such preset");
  if (lesson_) leave_lesson();
  if (!may_leave(command)) return;
  start_with(preset->make(), {preset->title, preset->name, std::nullopt});
  say(std::string(preset->title) + ": " + preset->about);
}

void Store::carry_out(const ShowDialog& command) {
  if (lesson_ && command.dialog == Dialog::save_as) return carry_out(SaveFile{});  // which says why not
  if (view_.forms.dialog == Dialog::writing) carry_out(CancelQuestion{});
  if (command.dialog == Dialog::import_tensors) {
    if (origin_.source) choose_from(origin_.source->tensors);
    return;
  }
  if (command.dialog == Dialog::none && view_.forms.dialog != Dialog::none) carry_out(CancelReading{});
  view_.forms.dialog = command.dialog;
  if (command.dialog == Dialog::none) stay();
  const bool is_opening = command.dialog == Dialog::open || command.dialog == Dialog::open_reference ||
                          command.dialog == Dialog::open_tensors || command.dialog == Dialog::open_given;
  if (is_opening || command.dialog == Dialog::save_as || command.dialog == Dialog::export_files) {
    if (view_.forms.browser.directory.empty() && origin_.path)
      view_.forms.browser.directory = origin_.path->parent_path();
    list(view_.forms.browser.directory);
    if (command.dialog == Dialog::save_as)
      view_.forms.browser.name = origin_.path
                                     ? origin_.path->filename().string()
                                     : (origin_.preset.empty() ? "attention" : origin_.preset) + ".json";
    if (is_opening) view_.forms.browser.name.clear();
    if (command.dialog != Dialog::export_files)
      view_.forms.typed = Typed{"browser/name", view_.forms.browser.name, true, true};
    message_ = {};  // an error of this dialog is shown in it, one from before is not
  }
}

void Store::carry_out(const BrowseTo& command) {
  const bool opens = view_.forms.dialog == Dialog::open;  // what was chosen there is not here
  if (opens) view_.forms.browser.name.clear();
  list(command.directory);
}

void Store::carry_out(const CopyText& command) {
  clipboard_ = command.text;
  say("Copied");
}

void Store::carry_out(const ShowMessage& command) {
  say(command.text, command.is_error);
}

void Store::carry_out(const Quit& command) {
  if (lesson_) leave_lesson();
  if (!may_leave(command)) return;
  if (is_writing()) return leave_when_written(command);
  quit_ = true;
}

void Store::carry_out(const DiscardAndContinue&) {
  if (view_.forms.dialog == Dialog::writing) return exporting_.stop(true);
  view_.forms.dialog = Dialog::none;
  if (!waiting_) return;
  const Command next = *std::exchange(waiting_, std::nullopt);
  given_up_ = model_;
  dispatch(next);
  if (!waiting_) given_up_.reset();
}

void Store::carry_out(const TakeMemory&) {
  granted_bytes_ = std::max(granted_bytes_, asked_bytes_);
  view_.forms.dialog = Dialog::none;
  if (waiting_) dispatch(*std::exchange(waiting_, std::nullopt));
}

void Store::carry_out(const CancelQuestion&) {
  stay();
  view_.forms.dialog = Dialog::none;
}

bool Store::may_leave(const Command& command) {
  if (saving_.is_busy()) {  // what is being saved is to become part of this document, not of the next
    leave_when_written(command);
    return false;
  }
  if (model_ == saved_ || given_up_ == model_) return true;
  waiting_ = command;
  view_.forms.dialog = Dialog::unsaved_work;
  return false;
}

void Store::leave_when_written(const Command& command) {
  waiting_ = command;
  leaves_when_written_ = true;
  if (!command.as<Quit>()) return;
  const std::filesystem::path& path = saving_.is_busy() ? saved_to_ : exported_;
  view_.forms.question = path.filename().string() + " is being written. attnscope quits when that is done.";
  view_.forms.dialog = Dialog::writing;
}

void Store::stay() {
  waiting_.reset();
  given_up_.reset();
  leaves_when_written_ = false;
}

bool Store::may_take_memory(const core::attention::Model& model, const Command& command) {
  if (memory_need(model, 0).bytes <= bytes_without_a_question) return true;  // and the system is not asked
  const MemoryNeed need = memory_need(model, free_memory_());
  if (need.is_too_much()) throw core::Error(need.words());
  if (need.bytes <= granted_bytes_) return true;
  asked_bytes_ = need.bytes;
  waiting_ = command;
  view_.forms.question = need.words() + ".";
  view_.forms.dialog = Dialog::memory;
  return false;
}

void Store::start_with(core::attention::Model model, Origin origin) {
  model_ = saved_ = first_ = std::move(model);
  origin_ = std::move(origin);
  given_up_.reset();
  history_.clear();
  release(view_);
  view_.selection.hovered.reset();
  view_.look.tokens.pinned_query.reset();
  view_.look.tokens.silent_heads.clear();
  view_.selection.cursor.reset();
  view_.forms.dialog = Dialog::none;
  keep_view_within_model();
}

void Store::remember(const std::filesystem::path& path) {
  std::error_code nowhere;  // where there is no current folder
  const std::filesystem::path whole = std::filesystem::absolute(path, nowhere);
  recent_ = with_recent(std::move(recent_), nowhere ? path : whole);
}

void Store::keep_view_within_model() {
  view_.look.reference = references_.empty() ? 0 : std::min(view_.look.reference, references_.size() - 1);
  keep_within(view_, model_);
}

}  // namespace app
