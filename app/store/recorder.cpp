#include "app/store/recorder.hpp"

#include <thread>
#include <utility>

#include "app/files/view_text.hpp"
#include "core/error.hpp"
#include "core/experiment/experiment_file.hpp"

namespace app {
namespace {

using namespace std::chrono_literals;
using Clock = Jobs::Clock;

constexpr auto rest = 300ms;               // between two writings
constexpr auto again = 10s;                // after a writing that has failed more than once
constexpr auto look = 10ms;                // between two looks at the token
constexpr auto promised = 900ms;           // from an edit to its writing's end, where that can be
constexpr double share_of_a_thread = 0.2;  // that writing may take, where it takes longer

/// Until the next writing may begin: an edit in the first moment of one waits for its end, the pause and the
/// next.
Clock::duration pause_after(Clock::duration writing) {
  if (2 * writing + rest <= promised) return rest;
  return std::chrono::duration_cast<Clock::duration>(writing / share_of_a_thread);
}

}  // namespace

void Recorder::Desk::put(std::optional<Entry> entry) {
  const std::lock_guard lock(mutex_);
  entry_.swap(entry);  // what was there ends behind the lock
}

std::optional<Recorder::Entry> Recorder::Desk::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(entry_, std::nullopt);
}

bool Recorder::Desk::is_empty() const {
  const std::lock_guard lock(mutex_);
  return !entry_;
}

void Recorder::begin(const std::filesystem::path& folder) {
  try {
    left_ = Journal::left_in(folder);
    journal_ = std::make_shared<Journal>(folder);
  } catch (const core::Error& error) {
    why_not_ = error.what();
    throw;
  }
}

void Recorder::tell(const std::string& why) {
  lane_.jobs().tell({not_recorded(why)});
}

Recorder::Entry Recorder::entry_of(const Document& document, const View& view) {
  const Origin& origin = document.origin;
  if (since_.empty()) since_ = time_of_day();
  return {{origin.title, origin.path, origin.stamp, since_, time_of_day()},
          {document.model, view_text(view), core::importing::left_out_words(origin.account)},
          document.whole};
}

void Recorder::Entry::write_to(Journal& journal) const {
  if (!whole) return journal.write(head, session);
  journal.write(head,
                core::experiment::experiment_text(whole->transformer, whole->experiment, session.view, "/"));
}

bool Recorder::is_written(const Document& document) const {
  if (!written_) return false;
  return document.whole ? document.whole->experiment == written_->experiment
                        : document.model == written_->model;
}

void Recorder::follow(const Document& document, const View& view) {
  if (!journal_) {
    if (!why_not_.empty() && document.is_modified()) tell(std::exchange(why_not_, ""));
    return;
  }
  if (!document.is_modified()) {
    desk_.put({});
    written_.reset();  // what is redone is not on the desk any more
    if (lane_.is_busy()) return;
    if (!is_clear_) journal_->clear();
    is_clear_ = true;
    since_.clear();
    return;
  }
  if (is_clear_ || !is_written(document)) {
    written_ =
        Written{document.model, document.whole ? document.whole->experiment : core::experiment::Experiment()};
    is_clear_ = false;
    desk_.put(entry_of(document, view));
  }
  if (!desk_.is_empty() && !lane_.is_busy()) begin_to_write();
}

void Recorder::begin_to_write() {
  lane_.start(
      [this, journal = journal_, at = next_](const core::Token& token) -> Jobs::Delivery {
        while (token.goes_on() && Clock::now() < at) std::this_thread::sleep_for(look);
        const std::optional<Entry> entry = desk_.take();
        if (!entry) return {};
        const auto begin = Clock::now();
        entry->write_to(*journal);
        const auto end = Clock::now();
        return [this, next = end + pause_after(end - begin)] {
          next_ = next;
          has_failed_ = false;
        };
      },
      [this](const Failure& failure) {
        if (failure.is_stopped) return;
        const bool had_failed = std::exchange(has_failed_, true);
        next_ = Clock::now() + (had_failed ? again : 1s);
        written_.reset();  // it is tried again, whether there are more edits or not
        if (!had_failed) tell(failure.words);
      });
}

void Recorder::finish(const Document& document, const View& view) {
  if (!journal_) return;
  lane_.cancel();
  lane_.wait();
  if (document.is_modified()) {
    entry_of(document, view).write_to(*journal_);
  } else {
    journal_->clear();
  }
}

void Recorder::forget() {
  if (!journal_) return;
  lane_.cancel();
  lane_.wait();
  journal_->clear();
  is_clear_ = true;
}

void Recorder::take_up(std::size_t index) {
  forget();
  since_ = left_.at(index)->head().since;
  journal_ = left_[index];
  is_clear_ = false;
  written_.reset();
  left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(index));
}

void Recorder::drop(std::size_t index) {
  if (index >= left_.size()) return;
  left_[index]->clear();
  left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(index));
}

}  // namespace app
