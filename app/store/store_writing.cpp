// The part of the store that writes files: sessions and exports, beside the window.
#include <new>

#include "app/files/exporting.hpp"
#include "app/files/view_text.hpp"
#include "app/store/store.hpp"
#include "core/error.hpp"
#include "core/formats/sessions/session.hpp"

namespace app {

namespace formats = core::formats;

void Store::carry_out(const SaveFile&) {
  if (lesson_) throw core::Error("A lesson's model is not your work: leave the lesson with Esc, then save.");
  if (!origin_.path) return carry_out(ShowDialog{Dialog::save_as});
  save_to(*origin_.path);
}

void Store::carry_out(const SaveFileAs& command) {
  save_to(command.path);
  leaves_when_written_ = waiting_.has_value();
}

void Store::carry_out(const SaveAndContinue&) {
  view_.forms.dialog = Dialog::none;
  if (!origin_.path) return carry_out(ShowDialog{Dialog::save_as});
  save_to(*origin_.path);
  if (waiting_) leave_when_written(*waiting_);
}

void Store::save_to(const std::filesystem::path& path) {
  saved_to_ = path;
  saving_.start(
      [this, path, model = model_, view = view_text(view_)](const core::Token&) -> Jobs::Delivery {
        formats::save_session(path, {model, view});
        return [this, path, model] {
          saved_ = model;  // which may have been edited since
          origin_.path = path;
          origin_.title = path.filename().string();
          if (view_.forms.dialog == Dialog::save_as) view_.forms.dialog = Dialog::none;
          remember(path);
          say("Saved " + path.string());
        };
      },
      [this, path](const Failure& failure) { fail_to_write(path, failure, true); });
}

void Store::carry_out(const ExportAs& command) {
  const auto trace = shows_newest() ? live_.lease().trace : nullptr;
  exported_ = command.path;
  exporting_.start(
      [this, command, model = model_, trace, view = view_,
       title = origin_.title](const core::Token& progress) -> Jobs::Delivery {
        const auto files = export_as({model, trace.get(), view, title}, command, progress);
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
  const bool is_awaited = leaves_when_written_ && (was_saving || (waiting_ && waiting_->as<Quit>()));
  if (!is_awaited) return;
  leaves_when_written_ = false;  // what is not written is not left behind
  if (view_.forms.dialog != Dialog::save_as) stay();
  if (view_.forms.dialog == Dialog::writing) view_.forms.dialog = Dialog::none;
}

void Store::leave_once_written() {
  if (!leaves_when_written_ || saving_.is_busy()) return;
  if (waiting_ && waiting_->as<Quit>() && exporting_.is_busy()) return;
  leaves_when_written_ = false;
  if (view_.forms.dialog == Dialog::writing) view_.forms.dialog = Dialog::none;
  if (waiting_) dispatch(*std::exchange(waiting_, std::nullopt));
}

}  // namespace app
