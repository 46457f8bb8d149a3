#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/session/journal_text.hpp"
#include "core/files/file.hpp"
#include "core/files/session.hpp"

namespace app {

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
  Journal(std::filesystem::path content, core::formats::Descriptor lock);
  void lock_in(const std::filesystem::path& folder);

  std::filesystem::path content_, lock_path_;
  core::formats::Descriptor lock_;
};

}  // namespace app
