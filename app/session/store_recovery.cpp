// The part of the store that keeps work from being lost: what is recorded for the case of a crash, what
// windows before have left, files that somebody else has changed, and an end without questions.
#include <algorithm>

#include "app/session/journal.hpp"
#include "app/session/remembered.hpp"
#include "app/session/store.hpp"
#include "core/base/error.hpp"
#include "core/editing/presets.hpp"

namespace app {
namespace {

/// Where work came from that a journal kept; it has no name of a preset, but its title.
Origin origin_of(const JournalHead& head) {
  Origin origin{head.title, "", head.path, head.stamp};
  const auto& presets = core::editing::presets();
  const auto preset = std::ranges::find(presets, head.title, &core::editing::Preset::title);
  if (!head.path && preset != presets.end()) origin.preset = preset->name;
  return origin;
}

}  // namespace

Recordable Store::to_record() const {
  const bool in_lesson = lessons_.is_under_way();
  return {lessons_.own(document_), view_, lessons_.state(), in_lesson ? &document_ : nullptr};
}

void Store::record_in(const std::filesystem::path& folder) {
  try {
    recorder_.begin(folder);
  } catch (const core::Error& error) {
    say(not_recorded(error.what()), true);
  }
  tidy();
}

/// Asks about what was left, or no longer when nothing is.
void Store::show_left() {
  auto& lines = view_.forms.left;
  lines.clear();
  for (const auto& journal : recorder_.left()) {
    try {
      lines.push_back(left_words(journal->head()));
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
  const std::filesystem::path path = head.path.value_or(head.title);
  message_ = {};
  read_beside(
      path,
      [this, journal, head, path, free = free_memory_()](const core::Token& progress) -> Jobs::Delivery {
        JournalTexts texts = journal->texts();
        auto ready = std::make_shared<FoundInFiles::Ready>();
        ready->path = path;
        ready->left = FoundInFiles::Left{journal, head, std::move(texts.in_lesson)};
        if (core::experiment::is_saved_experiment_text(texts.own)) {
          // Paths in it are from the root.
          ready->whole = std::make_shared<const OpenedWhole>(
              open_saved_whole(texts.own, "/" + head.title, core::Elsewhere::allowed, free / 2, progress));
        } else {
          core::formats::Session session = core::formats::parse_session(texts.own, head.title);
          ready->imported = {std::move(session.model), {}, session.view};
          for (std::string& words : session.left_out)
            ready->imported.account.not_supported.push_back({"", std::move(words)});
        }
        return [this, ready, journal] {
          if (!std::ranges::count(recorder_.left(), journal)) return;  // not wanted any more
          found_.ready = std::move(*ready);
          carry_out(FinishOpening{});
        };
      });
}

void Store::take_up(const FoundInFiles::Ready& ready) {
  if (!std::ranges::count(recorder_.left(), ready.left->journal))
    throw core::Error("What was left by a window before is there no longer.");
  const JournalHead& head = ready.left->head;
  Origin origin = origin_of(head);
  origin.account = ready.imported.account;
  start_with(ready.whole ? document_of(*ready.whole, std::move(origin))
                         : document_of(ready.imported.model, std::move(origin)));
  if (const auto* preset = core::editing::find_preset(document_.origin.preset))
    document_.first = preset->make();  // and not what had become of it
  if (!head.is_saved) {                // it is nowhere but in the journal
    document_.saved = {};
    document_.saved_experiment = {};
  }
  if (ready.whole) {
    whole_.begin_with(*document_.whole, {ready.whole->reading, ready.whole->before});
    look_at_layers(view_);
  }
  recall_view(ready.whole ? ready.whole->view : ready.imported.view, view_);
  keep_view_within_model();
  const std::string words =
      "Recovered: " + left_words(head) + (head.is_saved ? "." : ". It is not saved yet.");
  say(words);
  if (head.lesson.empty()) return recorder_.take_up(ready.left->journal);
  start_lesson(head.lesson, {ready.left->in_lesson, words, head.lesson_step, ready.left->journal});
}

/// What was tried in a lesson before a crash becomes its step's document again, as a step of undo.
void Store::try_again(const Tried& tried) {
  if (tried.session.empty()) return;
  document_.history.end_gesture();
  record_step("", "what was tried before");
  if (document_.whole) {
    const auto saved = core::experiment::parse_experiment(tried.session, "/" + document_.origin.title,
                                                          core::Elsewhere::allowed);
    experiment_with(core::experiment::with_saved_edits(saved, *document_.whole->model), "", "");
  } else {
    document_.model = core::formats::parse_session(tried.session, document_.origin.title).model;
  }
  document_.n_steps_saved = document_.history.n_done();  // those before are counted already
  document_.history.end_gesture();
  keep_view_within_model();
}

void Store::carry_out(const DropLeft& command) {
  if (command.index >= recorder_.left().size()) return;
  if (!command.is_agreed)
    return ask("This work is nowhere else: " + view_.forms.left.at(command.index) + ".", "Throw it away",
               DropLeft{command.index, true});
  recorder_.drop(command.index);
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
  wait_for(next, false);
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
  attempt("the record of edits", [this] { recorder_.finish(to_record()); });
  quit_ = true;
}

}  // namespace app
