// Journals are files, each next to one that its window locks.
#include <system_error>
#include <utility>

#include "app/session/journal.hpp"
#include "core/base/error.hpp"
#include "core/files/session.hpp"

namespace app {
namespace {

namespace fs = std::filesystem;

constexpr const char* lock_ending = ".lock";
constexpr const char* content_ending = ".journal";
constexpr std::size_t max_journal_bytes = 2 * core::formats::max_session_bytes + max_journal_header_bytes;

fs::path sibling_lock(fs::path content) {
  return content.replace_extension(lock_ending);
}

}  // namespace

Journal::Journal(fs::path content, core::system::LockFile lock)
    : content_(std::move(content)), lock_path_(sibling_lock(content_)), lock_(std::move(lock)) {}

Journal::Journal(const fs::path& folder) {
  lock_in(folder);
}

/// Picks an unused name in a folder and locks it.
void Journal::lock_in(const fs::path& folder) {
  std::error_code error, ignored;
  fs::create_directories(folder, error);
  if (error) throw core::Error(core::system::write_error_message(folder, error.value()));
  fs::permissions(folder, fs::perms::owner_all, ignored);  // it holds the work of one user
  do {
    content_ = folder / (core::system::random_name() + content_ending);
    lock_path_ = sibling_lock(content_);
    lock_ = core::system::LockFile::create(lock_path_, folder);
  } while (!lock_);  // another window may take it just before it is locked: then use another name
}

Journal::~Journal() {
  std::error_code ignored;
  if (!fs::exists(content_, ignored)) fs::remove(lock_path_, ignored);
}

std::vector<std::shared_ptr<Journal>> Journal::leftovers_in(const fs::path& folder) {
  std::vector<std::shared_ptr<Journal>> left;
  for (const fs::path& path : core::system::list_folder(folder).paths) {
    if (path.extension() != lock_ending) continue;
    auto lock = core::system::LockFile::try_lock(path);
    if (!lock) continue;
    fs::path content = path;
    content.replace_extension(content_ending);
    std::shared_ptr<Journal> journal(new Journal(content, *std::move(lock)));
    std::error_code error;
    if (fs::exists(content, error)) left.push_back(std::move(journal));
  }
  return left;
}

void Journal::write(const JournalHeader& header, const JournalSessions& sessions) {
  // The folder may have been removed, and without its lock file the journal would not be found.
  if (std::error_code error; !fs::exists(lock_path_, error)) lock_in(content_.parent_path());
  core::system::write_atomically(content_, journal_text(header, sessions));
}

JournalHeader Journal::header() const {
  return parse_journal_header(core::system::read_prefix(content_, max_journal_header_bytes),
                              content_.string());
}

JournalSessions Journal::texts() const {
  return parse_journal_sessions(core::system::read_file(content_, max_journal_bytes), content_.string());
}

void Journal::clear() {
  std::error_code ignored;
  fs::remove(content_, ignored);
}

}  // namespace app
