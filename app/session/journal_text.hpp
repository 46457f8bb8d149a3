#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace app {

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

}  // namespace app
