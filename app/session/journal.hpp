#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/system/file.hpp"

namespace app {

/// Metadata of a document in a journal.
struct JournalHeader {
  std::string title;
  std::optional<std::filesystem::path> path = {};  ///< where it is saved
  std::string stamp = {};                          ///< of that file when it was read
  /// Times of the first and the last unsaved edit: "2026-11-22 10:32".
  std::string since = {}, until = {};
  std::size_t n_edits = 1;  ///< unsaved ones
  bool is_saved = false;    ///< the document equals its file or preset; only edits in a lesson are unsaved
  std::string lesson = {}, lesson_title = {};  ///< of the lesson under way, or ""
  std::size_t lesson_step = 0;                 ///< in that lesson
  bool has_run = false;                        ///< there is a run of training, too
};

/// The sessions in a journal, as in session files.
struct JournalSessions {
  std::string own, in_lesson;  ///< the second is "" outside of lessons
  std::string run = {};        ///< of training, or ""
};

/// Maximum length in bytes of the part that parse_journal_header() reads.
inline constexpr std::size_t max_journal_header_bytes = std::size_t{64} << 10;

/// Returns the text of a journal: a line of JSON with the head, then the sessions.
std::string journal_text(const JournalHeader& header, const JournalSessions& sessions);
/// Parses the head of a journal or of its beginning; messages name place. Throws core::Error if damaged.
JournalHeader parse_journal_header(std::string_view begin, const std::string& place);
/// Splits off the sessions, without parsing them. Throws core::Error when there are not at least two.
JournalSessions parse_journal_sessions(std::string_view text, const std::string& place);

/// Returns the current local time: "2026-11-22 10:32".
std::string local_time_text();

/// Describes a journal: "lesson2.json, 14 edits, from 10:32 to 10:46", with dates other than now's.
std::string journal_summary(const JournalHeader& header, const std::string& now = local_time_text());

/// The file in which a running window keeps unsaved work, so that the next window can offer it.
///
/// A window locks its journal until the process ends: an unlocked one was left by a window that was killed.
/// Each function may be called in any thread, one at a time.
class Journal {
 public:
  /// Creates a journal in a folder, which is created if missing. Throws core::Error.
  explicit Journal(const std::filesystem::path& folder);
  /// Leaves a journal that is not cleared to the next window.
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// Locks and returns the journals in a folder that no process has locked and that are not empty.
  static std::vector<std::shared_ptr<Journal>> leftovers_in(const std::filesystem::path& folder);

  /// Replaces the contents, with sessions as in session files; they are on disk when it returns.
  ///
  /// Throws core::Error.
  void write(const JournalHeader& header, const JournalSessions& sessions);
  /// Reads the head, and only the beginning of the file. Throws core::Error when it is damaged.
  JournalHeader header() const;
  /// Reads the sessions. Throws core::Error when there are not at least two.
  JournalSessions texts() const;
  /// Removes the contents.
  void clear();

 private:
  Journal(std::filesystem::path content, core::system::LockFile lock);
  void lock_in(const std::filesystem::path& folder);

  std::filesystem::path content_, lock_path_;
  std::optional<core::system::LockFile> lock_;
};

}  // namespace app
