// The part of the store that writes files: sessions and exports, beside the window.
#include "app/session/exporting.hpp"
#include "app/session/journal.hpp"
#include "app/session/remembered.hpp"
#include "app/session/store.hpp"
#include "core/base/error.hpp"
#include "core/files/file.hpp"
#include "core/files/session.hpp"

namespace app {

namespace formats = core::formats;

void Store::carry_out(const SaveFile&) {
  if (lesson()) throw core::Error("A lesson's model is not your work: leave the lesson with Esc, then save.");
  if (!document_.origin.path) return carry_out(ShowDialog{Dialog::save_as});
  if (is_changed_elsewhere())
    return ask(
        document_.origin.path->string() +
            " has been changed by somebody else since it was read here. Saving replaces what is there.",
        "Replace it", SaveFileAs{*document_.origin.path});
  save_to(*document_.origin.path);
}

void Store::carry_out(const SaveFileAs& command) {
  save_to(command.path);
  waiting_.is_for_writing = waiting_.next.has_value();
}

void Store::carry_out(const SaveAndContinue&) {
  view_.forms.dialog = Dialog::none;
  if (!document_.origin.path) return carry_out(ShowDialog{Dialog::save_as});
  if (is_changed_elsewhere()) {
    carry_out(ShowDialog{Dialog::save_as});
    return say(document_.origin.path->string() + " has been changed by somebody else since it was read here.",
               true);
  }
  save_to(*document_.origin.path);
  if (waiting_.next) leave_when_written(*waiting_.next);
}

void Store::save_to(const std::filesystem::path& path) {
  writer_.saved_to = path;
  if (lessons_.own(document_).whole) return save_whole_to(path);
  writer_.saving.start(
      [this, path, model = document_.model, n_steps = document_.history.n_done(), view = view_text(view_),
       left_out = core::importing::not_supported_words(document_.origin.account)](
          const core::Token&) -> Jobs::Delivery {
        formats::save_session(path, {model, view, left_out});
        return [this, path, model, n_steps, stamp = file_stamp(path)] {
          Document& own = lessons_.own(document_);
          own.saved = model;  // which may have been edited since
          own.n_steps_saved = n_steps;
          note_saved(own, path, stamp);
        };
      },
      [this, path](const Failure& failure) { fail_to_write(path, failure, true); });
}

void Store::save_whole_to(const std::filesystem::path& path) {
  const WholeModel& whole = *lessons_.own(document_).whole;
  writer_.saving.start(
      [this, path, model = whole.model, experiment = whole.experiment,
       n_steps = lessons_.own(document_).history.n_done(),
       view = view_text(view_)](const core::Token&) -> Jobs::Delivery {
        core::experiment::save_experiment(path, *model, experiment, view);
        return [this, path, experiment, n_steps, stamp = file_stamp(path)] {
          Document& own = lessons_.own(document_);
          own.saved_experiment = experiment;
          own.n_steps_saved = n_steps;
          note_saved(own, path, stamp);
        };
      },
      [this, path](const Failure& failure) { fail_to_write(path, failure, true); });
}

/// What is on the disk has a name and a place from now on.
void Store::note_saved(Document& own, const std::filesystem::path& path, const std::string& stamp) {
  own.origin.path = lasting_path(path);
  own.origin.stamp = stamp;
  own.origin.title = path.filename().string();
  if (view_.forms.dialog == Dialog::save_as) view_.forms.dialog = Dialog::none;
  remember(path);
  say("Saved " + path.string());
}

void Store::carry_out(const ExportAs& command) {
  const auto trace = shows_newest() ? live_.lease().trace : nullptr;
  writer_.exported = command.path;
  writer_.exporting.start(
      [this, command, model = document_.model, trace, view = view_, title = document_.origin.title,
       left_out = core::importing::not_supported_words(document_.origin.account)](
          const core::Token& progress) -> Jobs::Delivery {
        const auto files = export_as({model, trace.get(), view, title, left_out}, command, progress);
        return [this, files, path = command.path] {
          if (view_.forms.dialog == Dialog::export_files) view_.forms.dialog = Dialog::none;
          view_.forms.browser.asks_to_replace = false;
          say(files.size() == 1 ? "Exported " + files.front().string()
                                : "Exported " + std::to_string(files.size()) + " files to " + path.string());
        };
      },
      [this, path = command.path](const Failure& failure) { fail_to_write(path, failure, false); });
}

void Store::fail_to_write(const std::filesystem::path& path, const Failure& failure, bool was_saving) {
  if (failure.is_stopped) return say("Stopped: nothing was exported");
  say(failure.lacks_memory ? path.string() + ": there is not enough memory to write it" : failure.words,
      true);
  const bool is_awaited = waiting_.is_for_writing && (was_saving || is_quitting());
  if (!is_awaited) return;
  waiting_.is_for_writing = false;  // what is not written is not left behind
  if (view_.forms.dialog != Dialog::save_as) stay();
  if (view_.forms.dialog == Dialog::writing) view_.forms.dialog = Dialog::none;
}

void Store::leave_once_written() {
  if (!waiting_.is_for_writing || writer_.saving.is_busy()) return;
  if (is_quitting() && writer_.exporting.is_busy()) return;
  waiting_.is_for_writing = false;
  if (view_.forms.dialog == Dialog::writing) view_.forms.dialog = Dialog::none;
  go_on();
}

}  // namespace app
