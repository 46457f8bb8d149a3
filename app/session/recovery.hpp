#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/session/document.hpp"
#include "app/session/jobs.hpp"
#include "app/session/lessons.hpp"
#include "app/session/view.hpp"
#include "core/files/session.hpp"
#include "core/system/file.hpp"

/// What is not saved outlives the window: a recorder keeps it in a journal, which the next window offers.
namespace app {

/// What a journal keeps of a piece of work apart from its model.
struct JournalHead {
  std::string title;
  std::optional<std::filesystem::path> path = {};  ///< where it is saved
  std::string stamp = {};                          ///< of that file when it was read
  /// The first and the last edit that are not saved: "2026-11-22 10:32".
  std::string since = {}, until = {};
  std::size_t n_edits = 1;  ///< that are not saved
  bool is_saved = false;    ///< it is as its file or preset: what is not saved was tried in a lesson
  std::string lesson = {}, lesson_title = {};  ///< of the one under way, or ""
  std::size_t lesson_step = 0;                 ///< of it
};

/// The sessions that a journal keeps, as files would hold them.
struct JournalTexts {
  std::string own, in_lesson;  ///< the second is "" outside of lessons
};

/// In bytes, of what journal_head reads.
inline constexpr std::size_t longest_journal_head = std::size_t{64} << 10;

/// What stands in a journal: a line of JSON about the work, and the sessions.
std::string journal_text(const JournalHead& head, const JournalTexts& sessions);
/// Of a journal or of its beginning; place is named in messages. Throws core::Error when it is damaged.
JournalHead journal_head(std::string_view begin, const std::string& place);
/// Throws core::Error when there are not two sessions; what is in them is not looked at.
JournalTexts journal_texts(std::string_view text, const std::string& place);

/// "2026-11-22 10:32", of this moment, here.
std::string moment_now();

/// "lesson2.json, 14 edits, from 10:32 to 10:46", with the day where that is another one than now's.
std::string left_words(const JournalHead& head, const std::string& now = moment_now());

/// The file in which a running window keeps the work that is not saved, so that the next one can offer it.
///
/// A window holds the lock on its own, which ends with the process: one without is left by a window that was
/// killed. Each function may be called in any thread, one at a time.
class Journal {
 public:
  /// A new one in a folder, which is made when there is none. Throws core::Error.
  explicit Journal(const std::filesystem::path& folder);
  /// What is not cleared stays for the next window.
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// Those that nobody holds any more and that have something in them; they are held from now on.
  static std::vector<std::shared_ptr<Journal>> left_in(const std::filesystem::path& folder);

  /// Keeps this instead of what was kept before, sessions as files would hold them; safe when it returns.
  ///
  /// in_lesson is the session of the lesson under way, or "". Throws core::Error.
  void write(const JournalHead& head, const std::string& session, const std::string& in_lesson = "");
  /// Throws core::Error when it is damaged; only its beginning is read.
  JournalHead head() const;
  /// The two sessions. Throws core::Error when there are not two.
  JournalTexts texts() const;
  /// Keeps nothing any more.
  void clear();

 private:
  Journal(std::filesystem::path content, core::system::LockFile lock);
  void lock_in(const std::filesystem::path& folder);

  std::filesystem::path content_, lock_path_;
  std::optional<core::system::LockFile> lock_;
};

/// What is said when edits cannot be written down, and why not.
inline std::string not_recorded(const std::string& why) {
  return "Edits are not recorded for the case of a crash: " + why;
}

/// How long what a window leaves that is still ending is looked for at the start.
constexpr std::chrono::seconds looks_for_left{5};

/// What is to outlive a crash: the person's own work, and what is tried in the lesson that put it aside.
struct Recordable {
  const Document& own;
  const View& view;
  const LessonState* lesson = nullptr;  ///< the one under way, or nullptr
  const Document* tried = nullptr;      ///< the document of that lesson's step

  bool is_modified() const {
    return (own.is_modified() && !own.is_attached()) || (lesson && tried->is_modified());
  }
};

/// Keeps what is not saved in a journal, within a second of every edit, in the background; and what windows
/// before have left.
class Recorder {
 public:
  explicit Recorder(Jobs& jobs) : queue_(jobs, JobQueue::Takes::newest) {}

  /// Begins to record in a folder, and finds what was left there. Throws core::Error when nothing can be
  /// written there, which is tried again from edit to edit.
  void begin(const std::filesystem::path& folder);
  /// Hands the work over to be written when it has other numbers than the last one; once a frame. What waits
  /// to be written is always the newest.
  void follow(const Recordable& work);
  /// Finds what a window leaves that was still ending when this one began; whether there is any.
  bool finds_more();
  /// Waits for what is being written, and writes the work: for the next window when it is not saved.
  void finish(const Recordable& work);
  /// Keeps nothing: what is not saved is given up, as the person has said.
  void forget();

  const std::vector<std::shared_ptr<Journal>>& left() const { return left_; }
  /// Goes on in a journal that was left, whose work is the document from now on.
  void restore(std::shared_ptr<Journal> journal);
  void drop(std::size_t index);
  /// The others may offer it.
  void keep_for_later();

 private:
  /// What a journal is to hold of a piece of work, which is known again by it.
  struct Entry {
    struct Text {
      core::formats::Session session;
      std::shared_ptr<const WholeModel> whole;  // instead of the session's model, which is a layer of it
      std::string text() const;
      bool is_of(const Document& document) const;
    };
    JournalHead head;
    Text own;
    std::optional<Text> tried;

    void write_to(Journal& journal) const;
    bool is_of(const Recordable& work) const;
  };
  Entry entry_of(const Recordable& work);
  bool has_journal(const Recordable& work);
  /// What waits to be written becomes another entry, or nothing; gives what it was.
  std::shared_ptr<const Entry> exchange_next(std::shared_ptr<const Entry> entry);
  void begin_to_write();
  void tell(const std::string& why);

  std::filesystem::path folder_;  // "" where nothing is to be recorded
  std::shared_ptr<Journal> journal_;
  std::vector<std::shared_ptr<Journal>> left_;
  std::shared_ptr<const Entry> newest_;  // that was handed over; nullptr: it is to be made again
  std::string since_;                    // the first edit that is not saved
  std::size_t n_edits_before_ = 0;       // of the work that was restored
  bool is_clear_ = true;                 // nothing is in the journal
  bool has_failed_ = false;              // which is said once
  std::string why_not_;                  // nothing is recorded, until that was said
  Jobs::Clock::time_point next_, look_next_, look_until_;
  std::mutex mutex_;
  std::shared_ptr<const Entry> next_entry_;  // guarded by the mutex: the thread that writes takes the newest
  JobQueue queue_;
};

}  // namespace app
