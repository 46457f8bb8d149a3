// The part of the store that keeps work from being lost: what is recorded for the case of a crash, what
// windows before have left, files that somebody else has changed, and an end without questions.
#include "app/files/file_stamp.hpp"
#include "app/store/store.hpp"
#include "core/error.hpp"
#include "core/experiment/experiment_file.hpp"

namespace app {

void Store::record_in(const std::filesystem::path& folder) {
  try {
    recorder_.begin(folder);
  } catch (const core::Error& error) {
    say(std::string("Edits are not recorded for the case of a crash: ") + error.what(), true);
  }
  if (recorder_.left().empty()) return;
  show_left();
}

/// Asks about what was left, or no longer when nothing is.
void Store::show_left() {
  auto& lines = view_.forms.left;
  lines.clear();
  for (std::size_t k = 0; k < recorder_.left().size(); ++k) {
    try {
      lines.push_back(left_words(recorder_.left()[k]->head()));
    } catch (const std::exception& error) {
      lines.push_back(error.what());
    }
  }
  view_.forms.dialog = lines.empty() ? Dialog::none : Dialog::recovery;
}

void Store::carry_out(const TakeUpLeft& command) {
  if (command.index >= recorder_.left().size()) return;
  const auto journal = recorder_.left()[command.index];
  const JournalHead head = journal->head();
  if (std::string text = journal->text(); core::experiment::is_saved_experiment_text(text))
    return take_up_whole(command, head, std::move(text));
  core::formats::Session session = journal->session();
  if (!may_take_memory(session.model, command)) return;
  leave_lesson();
  if (!may_leave(command)) return;
  Origin origin{head.title};
  origin.path = head.path;
  origin.stamp = head.stamp;
  for (std::string& words : session.left_out) origin.account.left_out.push_back({"", std::move(words)});
  recorder_.take_up(command.index);
  start_with(document_of(session.model, std::move(origin)));
  document_.saved = {};  // it is nowhere but in the journal
  recall_view(session.view, view_);
  keep_view_within_model();
  say("Recovered: " + left_words(head) + ". It is not saved yet.");
}

void Store::take_up_whole(const TakeUpLeft& command, const JournalHead& head, std::string text) {
  leave_lesson();
  if (!may_leave(command)) return;
  view_.forms.dialog = Dialog::none;
  const auto taken = [this, command, head](const std::shared_ptr<const OpenedWhole>& whole) {
    recorder_.take_up(command.index);
    start_with_whole({head.title, {}, {}, "", whole});
    document_.origin = {head.title, "", head.path, head.stamp};
    document_.saved_experiment = {};  // it is nowhere but in the journal
    say("Recovered: " + left_words(head) + ". It is not saved yet.");
  };
  // Paths in it are from the root.
  read_beside("/" + head.title,
              [this, taken, text = std::move(text), free = free_memory_(),
               place = "/" + head.title](const core::Token& progress) -> Jobs::Delivery {
                const auto whole = std::make_shared<const OpenedWhole>(
                    open_saved_whole(text, place, core::Elsewhere::allowed, free / 2, progress));
                return [taken, whole] { taken(whole); };
              });
}

void Store::carry_out(const DropLeft& command) {
  recorder_.drop(command.index);
  show_left();
}

void Store::carry_out(const KeepLeft&) {
  recorder_.keep_for_later();
  view_.forms.dialog = Dialog::none;
  say("What was left is offered again by the next window.");
}

void Store::carry_out(const GoOn&) {
  view_.forms.dialog = Dialog::none;
  go_on();
}

/// Asks something of which the answer is to go on with a command, or not to.
void Store::ask(std::string question, std::string answer, const Command& next) {
  waiting_.next = next;
  view_.forms.question = std::move(question);
  view_.forms.answer = std::move(answer);
  view_.forms.dialog = Dialog::question;
}

bool Store::is_changed_elsewhere() const {
  const Origin& origin = lessons_.own(document_).origin;
  if (!origin.path || origin.stamp.empty()) return false;
  const std::string now = file_stamp(*origin.path);
  return !now.empty() && now != origin.stamp;
}

void Store::carry_out(const EndNow&) {
  writer_.exporting.stop(true);
  writer_.saving.wait();
  jobs_.deliver();
  attempt("the record of edits", [this] { recorder_.finish(lessons_.own(document_), view_); });
  quit_ = true;
}

}  // namespace app
