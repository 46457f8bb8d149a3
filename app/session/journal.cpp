#include "app/session/journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "core/base/error.hpp"
#include "core/files/list_folder.hpp"
#include "core/files/unfinished.hpp"

namespace app {
namespace {

namespace fs = std::filesystem;
namespace formats = core::formats;

constexpr const char* lock_ending = ".lock";
constexpr const char* content_ending = ".journal";
constexpr std::size_t largest_journal = 2 * formats::largest_session + longest_journal_head;

fs::path lock_beside(fs::path content) {
  return content.replace_extension(lock_ending);
}

/// Opens a lock's file and takes the lock; a negative descriptor and the error when that cannot be,
/// EWOULDBLOCK when somebody else has it or has just removed it.
formats::Descriptor taken(const fs::path& path, int flags) {
  formats::Descriptor lock(::open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0600));
  if (lock.number() < 0) return lock;
  struct stat about;
  int error = ::flock(lock.number(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  if (error == 0 && (::fstat(lock.number(), &about) != 0 || about.st_nlink == 0)) error = EWOULDBLOCK;
  if (error != 0) lock.close();
  errno = error;
  return lock;
}

}  // namespace

Journal::Journal(fs::path content, formats::Descriptor lock)
    : content_(std::move(content)), lock_path_(lock_beside(content_)), lock_(std::move(lock)) {}

Journal::Journal(const fs::path& folder) : lock_(-1) {
  lock_in(folder);
}

/// Takes a name in a folder that nobody has, and the lock on it.
void Journal::lock_in(const fs::path& folder) {
  std::error_code error, ignored;
  fs::create_directories(folder, error);
  if (error) throw core::Error(formats::cannot_be_written(folder, error.value()));
  fs::permissions(folder, fs::perms::owner_all, ignored);  // what is in it is the work of one person
  do {
    content_ = folder / (formats::random_name() + content_ending);
    lock_path_ = lock_beside(content_);
    lock_.reset(taken(lock_path_, O_CREAT | O_EXCL).release());
    // Another window may look at it in the moment before it is locked: then another name.
    if (lock_.number() >= 0 || errno == EEXIST || errno == EWOULDBLOCK) continue;
    const int why = errno;  // some file systems have no locks
    fs::remove(lock_path_, ignored);
    throw core::Error(formats::cannot_be_written(folder, why));
  } while (lock_.number() < 0);
}

Journal::~Journal() {
  std::error_code ignored;
  if (!fs::exists(content_, ignored)) fs::remove(lock_path_, ignored);
}

std::vector<std::shared_ptr<Journal>> Journal::left_in(const fs::path& folder) {
  std::vector<std::shared_ptr<Journal>> left;
  for (const fs::path& path : formats::list_folder(folder).paths) {
    if (path.extension() != lock_ending) continue;
    formats::Descriptor lock = taken(path, 0);
    if (lock.number() < 0) continue;
    fs::path content = path;
    content.replace_extension(content_ending);
    std::shared_ptr<Journal> journal(new Journal(content, std::move(lock)));
    std::error_code error;
    if (fs::exists(content, error)) left.push_back(std::move(journal));
  }
  return left;
}

void Journal::write(const JournalHead& head, const std::string& session, const std::string& in_lesson) {
  // Somebody may have removed the folder, and without its lock nobody would find the journal.
  if (std::error_code error; !fs::exists(lock_path_, error)) lock_in(content_.parent_path());
  formats::write_atomically(content_, journal_text(head, {session, in_lesson}));
}

JournalHead Journal::head() const {
  return journal_head(formats::read_begin(content_, longest_journal_head), content_.string());
}

formats::Session Journal::session() const {
  return formats::parse_session(texts().own, content_.string());
}

JournalTexts Journal::texts() const {
  return journal_texts(formats::read_file(content_, largest_journal), content_.string());
}

void Journal::clear() {
  std::error_code ignored;
  fs::remove(content_, ignored);
}

}  // namespace app
