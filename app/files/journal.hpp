#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/files/file.hpp"
#include "core/formats/sessions/session.hpp"

namespace app {

/// What a journal keeps of a piece of work beside its model.
struct JournalHead {
  std::string title;
  std::optional<std::filesystem::path> path = {};  ///< where it is saved
  std::string stamp = {};                          ///< of that file when it was read
  std::string since = {}, until = {};  ///< the first and the last edit that are not saved: "10:32"
};

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

  /// Keeps this instead of what was kept before; safe when it returns. Throws core::Error.
  void write(const JournalHead& head, const core::formats::Session& session);
  /// The same of a session that is a text already.
  void write(const JournalHead& head, const std::string& session);
  /// Throws core::Error when it is damaged.
  JournalHead head() const;
  core::formats::Session session() const;
  /// The session as a file would hold it.
  std::string text() const;
  /// Keeps nothing any more.
  void clear();

 private:
  Journal(std::filesystem::path content, core::formats::Descriptor lock);
  void lock_in(const std::filesystem::path& folder);

  std::filesystem::path content_, lock_path_;
  core::formats::Descriptor lock_;
};

/// "10:32", of this moment.
std::string time_of_day();

/// "lesson2.json, edited from 10:32 to 10:46".
std::string left_words(const JournalHead& head);

}  // namespace app
