#include "app/session/recorder.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "app/session/remembered.hpp"
#include "core/base/error.hpp"

namespace app {
namespace {

using namespace std::chrono_literals;
using Clock = Jobs::Clock;

constexpr auto rest = 300ms;               // between two writings
constexpr auto again = 10s;                // after a writing that has failed more than once
constexpr auto poll_interval = 10ms;       // between two looks at the token
constexpr auto look_again = 250ms;         // for what an ending window leaves
constexpr auto promised = 900ms;           // from an edit to its writing's end, where that can be
constexpr double share_of_a_thread = 0.2;  // that writing may take, where it takes longer

/// Until the next writing may begin: an edit in the first moment of one waits for its end, the pause and the
/// next.
Clock::duration pause_after(Clock::duration writing) {
  if (2 * writing + rest <= promised) return rest;
  return std::chrono::duration_cast<Clock::duration>(writing / share_of_a_thread);
}

}  // namespace

void Recorder::NextEntry::put(std::optional<Entry> entry) {
  const std::lock_guard lock(mutex_);
  entry_.swap(entry);  // what was there ends behind the lock
}

std::optional<Recorder::Entry> Recorder::NextEntry::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(entry_, std::nullopt);
}

bool Recorder::NextEntry::is_empty() const {
  const std::lock_guard lock(mutex_);
  return !entry_;
}

void Recorder::begin(const std::filesystem::path& folder) {
  folder_ = folder;
  look_until_ = Clock::now() + looks_for_left;
  try {
    left_ = Journal::left_in(folder);
    journal_ = std::make_shared<Journal>(folder);
  } catch (const core::Error& error) {
    why_not_ = error.what();
    throw;
  }
}

/// Whether there is a journal; one that could not be made is tried again.
bool Recorder::has_journal(const Recordable& work) {
  if (journal_ || folder_.empty() || !work.is_modified() || Clock::now() < next_) return journal_ != nullptr;
  try {
    journal_ = std::make_shared<Journal>(folder_);
    return true;
  } catch (const core::Error&) {
    next_ = Clock::now() + again;
    if (!why_not_.empty()) tell(std::exchange(why_not_, ""));
    return false;
  }
}

bool Recorder::finds_more() {
  const auto now = Clock::now();
  if (now >= look_until_ || now < look_next_) return false;
  look_next_ = now + look_again;
  const auto more = Journal::left_in(folder_);
  left_.insert(left_.end(), more.begin(), more.end());
  return !more.empty();
}

void Recorder::tell(const std::string& why) {
  queue_.jobs().tell({not_recorded(why)});
}

Recorder::Entry Recorder::entry_of(const Recordable& work) {
  const Origin& origin = work.own.origin;
  if (since_.empty()) since_ = moment_now();
  Entry entry{{origin.title, origin.path, origin.stamp, since_, moment_now()},
              {{work.own.model, view_text(work.view), core::importing::not_supported_words(origin.account)},
               work.own.is_attached() ? nullptr : work.own.whole},
              {}};
  entry.head.is_saved = !work.own.is_modified();
  entry.head.n_edits = n_edits_before_ + work.own.n_unsaved_edits();
  if (work.lesson) {
    entry.head.lesson = work.lesson->lesson->name;
    entry.head.lesson_title = work.lesson->lesson->title;
    entry.head.lesson_step = work.lesson->step;
    entry.head.n_edits += work.tried->n_unsaved_edits();
    if (work.tried->is_modified())
      entry.tried = Entry::Text{{work.tried->model, view_text(work.view), {}}, work.tried->whole};
  }
  entry.head.n_edits = std::max<std::size_t>(entry.head.n_edits, 1);
  return entry;
}

std::string Recorder::Entry::Text::text() const {
  if (!whole) return core::formats::session_text(session);
  return core::experiment::experiment_text(*whole->model, whole->experiment, session.view, "/");
}

void Recorder::Entry::write_to(Journal& journal) const {
  journal.write(head, own.text(), tried ? tried->text() : "");
}

Recorder::Numbers Recorder::numbers_of(const Document& document) {
  return {document.model, document.whole ? document.whole->experiment : core::experiment::Experiment()};
}

bool Recorder::Numbers::are_of(const Document& document) const {
  return document.whole ? document.whole->experiment == experiment : document.model == model;
}

bool Recorder::Written::is_of(const Recordable& work) const {
  if (!own.are_of(work.own) || tried.has_value() != (work.lesson != nullptr)) return false;
  if (path != work.own.origin.path || stamp != work.own.origin.stamp) return false;
  return !tried ||
         (tried->are_of(*work.tried) && lesson == work.lesson->lesson->name && step == work.lesson->step);
}

void Recorder::follow(const Recordable& work) {
  if (!has_journal(work)) return;
  if (!work.is_modified()) {
    next_entry_.put({});
    written_.reset();  // what is redone is not on the desk any more
    if (queue_.is_busy()) return;
    if (!is_clear_) journal_->clear();
    is_clear_ = true;
    since_.clear();
    n_edits_before_ = 0;
    return;
  }
  if (is_clear_ || !written_ || !written_->is_of(work)) {
    written_.reset();  // until all of it is on the desk
    next_entry_.put(entry_of(work));
    const Origin& origin = work.own.origin;
    written_ = Written{numbers_of(work.own), origin.path, origin.stamp, {}, "", 0};
    if (work.lesson) {
      written_->tried = numbers_of(*work.tried);
      written_->lesson = work.lesson->lesson->name;
      written_->step = work.lesson->step;
    }
    is_clear_ = false;
  }
  if (!next_entry_.is_empty() && !queue_.is_busy()) begin_to_write();
}

void Recorder::begin_to_write() {
  queue_.start(
      [this, journal = journal_, at = next_](const core::Token& token) -> Jobs::Delivery {
        while (token.goes_on() && Clock::now() < at) std::this_thread::sleep_for(poll_interval);
        const std::optional<Entry> entry = next_entry_.take();
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
        next_ = now + std::max<Clock::duration>(pause_after(now - began), had_failed ? again : 1s);
        written_.reset();  // it is tried again, whether there are more edits or not
        if (!had_failed) tell(failure.words);
      });
}

void Recorder::finish(const Recordable& work) {
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
  const JournalHead head = journal->head();
  forget();
  since_ = head.since;
  n_edits_before_ = head.n_edits;
  is_clear_ = false;
  written_.reset();
  std::erase(left_, journal);
  journal_ = std::move(journal);
}

void Recorder::keep_for_later() {
  left_.clear();
  look_until_ = {};
}

void Recorder::drop(std::size_t index) {
  if (index >= left_.size()) return;
  left_[index]->clear();
  left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(index));
}

}  // namespace app
