#include "app/session/recovery.hpp"

#include <algorithm>
#include <utility>

#include "app/session/remembered.hpp"
#include "core/base/error.hpp"

namespace app {
namespace {

namespace formats = core::formats;
using namespace std::chrono_literals;

constexpr auto write_pause = 300ms;             // between two writes
constexpr auto retry_delay = 10s;               // after a write has failed more than once
constexpr auto leftover_poll_interval = 250ms;  // for journals of closing windows
constexpr auto max_save_delay = 900ms;          // from an edit to the end of its write, if possible
constexpr double max_write_share = 0.2;         // for writing, if it takes longer

/// Returns the pause before the next write: an edit just after the start of a write waits for its end, the
/// pause and the next write.
Clock::duration pause_after(Clock::duration writing) {
  if (2 * writing + write_pause <= max_save_delay) return write_pause;
  return std::chrono::duration_cast<Clock::duration>(writing / max_write_share);
}

}  // namespace

void Recorder::begin(const std::filesystem::path& folder) {
  folder_ = folder;
  last_leftover_search_ = Clock::now() + leftover_search_time;
  try {
    leftovers_ = Journal::leftovers_in(folder);
    journal_ = std::make_shared<Journal>(folder);
  } catch (const core::Error& error) {
    unreported_error_ = error.what();
    throw;
  }
}

/// Whether there is a journal; retries one that could not be created.
bool Recorder::has_journal(const UnsavedWork& work) {
  if (journal_ || folder_.empty() || !work.is_modified() || Clock::now() < next_) return journal_ != nullptr;
  try {
    journal_ = std::make_shared<Journal>(folder_);
    return true;
  } catch (const core::Error&) {
    next_ = Clock::now() + retry_delay;
    if (!unreported_error_.empty()) report_failure(std::exchange(unreported_error_, ""));
    return false;
  }
}

bool Recorder::find_more_leftovers() {
  const auto now = Clock::now();
  if (now >= last_leftover_search_ || now < next_leftover_search_) return false;
  next_leftover_search_ = now + leftover_poll_interval;
  const auto more = Journal::leftovers_in(folder_);
  leftovers_.insert(leftovers_.end(), more.begin(), more.end());
  return !more.empty();
}

void Recorder::report_failure(const std::string& why) {
  queue_.jobs().report_failure({not_recorded_message(why)});
}

Recorder::JournalEntry Recorder::entry_of(const UnsavedWork& work) {
  const Origin& origin = work.own.origin;
  if (since_.empty()) since_ = local_time_text();
  JournalEntry entry{{origin.title, origin.path, origin.stamp, since_, local_time_text()},
                     {{work.own.model, view_text(work.view, "/"),
                       core::importing::not_supported_words(origin.import_report)},
                      work.own.has_no_file() ? nullptr : without_pass(work.own.full_model)},
                     {},
                     std::string(work.run)};
  entry.header.has_run = !work.run.empty();
  entry.header.is_saved = !work.own.is_modified();
  entry.header.n_edits = n_edits_before_ + work.own.n_unsaved_edits();
  if (work.lesson) {
    entry.header.lesson = work.lesson->lesson->name;
    entry.header.lesson_title = work.lesson->lesson->title;
    entry.header.lesson_step = work.lesson->step;
    entry.header.n_edits += work.lesson_work->n_unsaved_edits();
    if (work.lesson_work->is_modified())
      entry.lesson_work = JournalEntry::DocumentCopy{{work.lesson_work->model, view_text(work.view, "/"), {}},
                                                     without_pass(work.lesson_work->full_model)};
  }
  entry.header.n_edits = std::max<std::size_t>(entry.header.n_edits, 1);
  return entry;
}

std::string Recorder::JournalEntry::DocumentCopy::text() const {
  if (!full_model) return formats::session_text(session);
  return core::experiment::experiment_text(*full_model->model, full_model->experiment, session.view, "/");
}

bool Recorder::JournalEntry::DocumentCopy::matches(const Document& document) const {
  if (!full_model) return document.model == session.model;
  return document.full_model && document.full_model->experiment == full_model->experiment;
}

void Recorder::JournalEntry::write_to(Journal& journal) const {
  journal.write(header, {own.text(), lesson_work ? lesson_work->text() : "", run});
}

bool Recorder::JournalEntry::matches(const UnsavedWork& work) const {
  const Origin& origin = work.own.origin;
  if (run != work.run || !own.matches(work.own) || header.path != origin.path || header.stamp != origin.stamp)
    return false;
  if (!work.lesson) return header.lesson.empty();
  if (header.lesson != work.lesson->lesson->name || header.lesson_step != work.lesson->step) return false;
  return lesson_work ? lesson_work->matches(*work.lesson_work) : !work.lesson_work->is_modified();
}

std::shared_ptr<const Recorder::JournalEntry> Recorder::exchange_next(
    std::shared_ptr<const JournalEntry> entry) {
  const std::lock_guard lock(mutex_);
  return std::exchange(next_entry_, std::move(entry));
}

void Recorder::follow(const UnsavedWork& work) {
  if (!has_journal(work)) return;
  if (!work.is_modified()) {
    exchange_next(nullptr);
    newest_.reset();
    if (queue_.is_busy()) return;
    if (!is_clear_) journal_->clear();
    is_clear_ = true;
    since_.clear();
    n_edits_before_ = 0;
    return;
  }
  if (is_clear_ || !newest_ || !newest_->matches(work)) {
    newest_.reset();  // so that it is retried if this throws
    const auto entry = std::make_shared<const JournalEntry>(entry_of(work));
    exchange_next(entry);
    newest_ = entry;
    is_clear_ = false;
  }
  if (queue_.is_busy()) return;
  {
    const std::lock_guard lock(mutex_);
    if (!next_entry_) return;
  }
  begin_to_write();
}

void Recorder::begin_to_write() {
  queue_.start_at(
      next_,
      [this, journal = journal_](const core::StopToken&) -> Jobs::Delivery {
        const auto entry = exchange_next(nullptr);
        if (!entry) return {};
        const auto begin = Clock::now();
        entry->write_to(*journal);
        const auto end = Clock::now();
        return [this, next = end + pause_after(end - begin)] {
          next_ = next;
          has_failed_ = false;
        };
      },
      [this, began = std::max(Clock::now(), next_)](const Failure& failure) {
        if (failure.is_stopped) return;
        const bool had_failed = std::exchange(has_failed_, true);
        const auto now = Clock::now();
        next_ = now + std::max<Clock::duration>(pause_after(now - began), had_failed ? retry_delay : 1s);
        newest_.reset();  // so that it is retried even without more edits
        if (!had_failed) report_failure(failure.words);
      });
}

void Recorder::finish(const UnsavedWork& work) {
  if (!journal_ && !folder_.empty() && work.is_modified()) journal_ = std::make_shared<Journal>(folder_);
  if (!journal_) return;
  queue_.cancel();
  queue_.wait();
  if (work.is_modified()) {
    entry_of(work).write_to(*journal_);
  } else {
    journal_->clear();
  }
}

void Recorder::forget() {
  if (!journal_) return;
  queue_.cancel();
  queue_.wait();
  journal_->clear();
  is_clear_ = true;
}

void Recorder::restore(std::shared_ptr<Journal> journal) {
  const JournalHeader header = journal->header();
  forget();
  since_ = header.since;
  n_edits_before_ = header.n_edits;
  is_clear_ = false;
  newest_.reset();
  std::erase(leftovers_, journal);
  journal_ = std::move(journal);
}

void Recorder::keep_for_later() {
  leftovers_.clear();
  last_leftover_search_ = {};
}

void Recorder::drop(std::size_t index) {
  if (index >= leftovers_.size()) return;
  leftovers_[index]->clear();
  leftovers_.erase(leftovers_.begin() + static_cast<std::ptrdiff_t>(index));
}

}  // namespace app
