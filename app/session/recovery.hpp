#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "app/session/document.hpp"
#include "app/session/jobs.hpp"
#include "app/session/journal.hpp"
#include "app/session/lessons.hpp"
#include "app/session/view.hpp"
#include "core/files/session.hpp"

/// Crash recovery: a recorder keeps unsaved work in a journal, which the next window offers to restore.
namespace app {

/// Returns the message that edits cannot be recorded, and why.
inline std::string not_recorded_message(const std::string& why) {
  return "Edits are not recorded for the case of a crash: " + why;
}

/// How long after the start to look for work left by a window that is still closing.
constexpr std::chrono::seconds leftover_search_time{5};

/// Work that must survive a crash: the user's own, and edits in the lesson for which it is set aside.
struct UnsavedWork {
  const Document& own;
  const View& view;
  const LessonState* lesson = nullptr;    ///< the one under way, or nullptr
  const Document* lesson_work = nullptr;  ///< the document of that lesson's step
  std::string_view run = {};              ///< the session of a run of training, or ""

  bool is_modified() const {
    return (own.is_modified() && !own.has_no_file()) || (lesson && lesson_work->is_modified()) ||
           !run.empty();
  }
};

/// Keeps unsaved work in a journal, within a second of every edit, in the background; and finds work left by
/// earlier windows.
class Recorder {
 public:
  explicit Recorder(Jobs& jobs) : queue_(jobs, JobQueue::QueuePolicy::newest) {}

  /// Begins to record in a folder, and finds work left there. Throws core::Error when nothing can be written
  /// there, which is retried while there is unsaved work.
  void begin(const std::filesystem::path& folder);
  /// Submits the work for writing when it has changed; called once a frame. Only the newest work waits to be
  /// written.
  void follow(const UnsavedWork& work);
  /// Finds work left by windows that were still closing when this one began; returns whether there is any.
  bool find_more_leftovers();
  /// Waits for the current write, then writes unsaved work for the next window, or clears the journal.
  void finish(const UnsavedWork& work);
  /// Clears the journal, as the user has agreed to discard unsaved work.
  void forget();

  const std::vector<std::shared_ptr<Journal>>& leftovers() const { return leftovers_; }
  /// Continues a journal that was left, whose work has become the document.
  void restore(std::shared_ptr<Journal> journal);
  void drop(std::size_t index);
  /// Unlocks the journals that were left, so that other windows can offer them.
  void keep_for_later();

 private:
  /// Contents for a journal, which can be compared with the current work.
  struct JournalEntry {
    struct DocumentCopy {
      core::formats::Session session;
      std::shared_ptr<const FullModelState>
          full_model;  // instead of the session's model, which is a layer of it
      std::string text() const;
      bool matches(const Document& document) const;
    };
    JournalHeader header;
    DocumentCopy own;
    std::optional<DocumentCopy> lesson_work;
    std::string run;

    void write_to(Journal& journal) const;
    bool matches(const UnsavedWork& work) const;
  };
  JournalEntry entry_of(const UnsavedWork& work);
  bool has_journal(const UnsavedWork& work);
  /// Replaces the entry that waits to be written, nullptr for none; returns the old one.
  std::shared_ptr<const JournalEntry> exchange_next(std::shared_ptr<const JournalEntry> entry);
  void begin_to_write();
  void report_failure(const std::string& why);

  std::filesystem::path folder_;  // "" where nothing is recorded
  std::shared_ptr<Journal> journal_;
  std::vector<std::shared_ptr<Journal>> leftovers_;
  std::shared_ptr<const JournalEntry> newest_;  // submitted last; nullptr: must be made again
  std::string since_;                           // time of the first unsaved edit
  std::size_t n_edits_before_ = 0;              // of restored work
  bool is_clear_ = true;                        // the journal is empty
  bool has_failed_ = false;                     // reported once
  std::string unreported_error_;                // nothing is recorded; "" once reported
  Clock::time_point next_, next_leftover_search_, last_leftover_search_;
  std::mutex mutex_;
  std::shared_ptr<const JournalEntry>
      next_entry_;  // guarded by the mutex: the writing thread takes the newest
  JobQueue queue_;
};

}  // namespace app
