#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/session.hpp"
#include "core/system/file.hpp"

namespace app {

/// The path from the root of a file that is there after this program too, so that it means the same to other
/// windows; as it is where there is no current folder. None of a pipe that the program was given.
std::optional<std::filesystem::path> lasting_path(const std::filesystem::path& path);

/// What a journal keeps of a piece of work beside its model.
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
  /// The first of them.
  core::formats::Session session() const;
  /// Keeps nothing any more.
  void clear();

 private:
  Journal(std::filesystem::path content, core::system::LockFile lock);
  void lock_in(const std::filesystem::path& folder);

  std::filesystem::path content_, lock_path_;
  std::optional<core::system::LockFile> lock_;
};

}  // namespace app
