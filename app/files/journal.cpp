#include "app/files/journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <ctime>
#include <system_error>

#include "core/error.hpp"
#include "core/formats/files/json.hpp"
#include "core/formats/files/list_folder.hpp"
#include "core/formats/files/unfinished.hpp"
#include "core/text/hexadecimal.hpp"

namespace app {
namespace {

namespace fs = std::filesystem;
namespace formats = core::formats;

constexpr const char* lock_ending = ".lock";
constexpr const char* content_ending = ".journal";
constexpr std::size_t largest_journal = std::size_t{1} << 30;

fs::path lock_beside(fs::path content) {
  return content.replace_extension(lock_ending);
}

/// Opens a lock's file and takes the lock; a negative descriptor when somebody else has it, or has just
/// removed it.
formats::Descriptor taken(const fs::path& path, int flags) {
  formats::Descriptor lock(::open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0600));
  struct stat about;
  if (lock.number() >= 0 && (::flock(lock.number(), LOCK_EX | LOCK_NB) != 0 ||
                             ::fstat(lock.number(), &about) != 0 || about.st_nlink == 0)) {
    lock.close();
    errno = EWOULDBLOCK;
  }
  return lock;
}

/// The content's two parts: a line of JSON about the work, and the session.
std::pair<std::string, std::string> parts_of(const fs::path& content) {
  const std::string text = formats::read_file(content, largest_journal);
  const std::size_t end = text.find('\n');
  if (end == text.npos) throw core::Error(content.string() + ": expected two parts, got one");
  return {text.substr(0, end), text.substr(end + 1)};
}

}  // namespace

Journal::Journal(fs::path content, formats::Descriptor lock)
    : content_(std::move(content)), lock_path_(lock_beside(content_)), lock_(std::move(lock)) {}

Journal::Journal(const fs::path& folder) : lock_(-1) {
  lock_in(folder);
}

/// Takes a name in a folder that nobody has, and the lock on it.
void Journal::lock_in(const fs::path& folder) {
  std::error_code error;
  // What is in it is the work of one person.
  if (fs::create_directories(folder, error)) fs::permissions(folder, fs::perms::owner_all, error);
  if (error) throw core::Error(formats::cannot_be_written(folder, error.value()));
  do {
    content_ = folder / (formats::random_name() + content_ending);
    lock_path_ = lock_beside(content_);
    lock_.reset(taken(lock_path_, O_CREAT | O_EXCL).release());
    // Another window may look at it in the moment before it is locked: then another name.
    if (lock_.number() < 0 && errno != EEXIST && errno != EWOULDBLOCK)
      throw core::Error(formats::cannot_be_written(folder, errno));
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

void Journal::write(const JournalHead& head, const formats::Session& session) {
  write(head, formats::session_text(session));
}

void Journal::write(const JournalHead& head, const std::string& session) {
  const auto member = [](const char* key, const std::string& text) {
    return std::string("\"") + key + "\": " + formats::json_quoted(text);
  };
  // Somebody may have removed the folder, and without its lock nobody would find the journal.
  if (std::error_code error; !fs::exists(lock_path_, error)) lock_in(content_.parent_path());
  // A path may be any bytes, which JSON has no place for.
  const std::string path = core::text::hexadecimal(head.path ? head.path->native() : "");
  formats::write_atomically(content_, "{" + member("title", head.title) + ", " + member("path", path) + ", " +
                                          member("stamp", head.stamp) + ", " + member("since", head.since) +
                                          ", " + member("until", head.until) + "}\n" + session);
}

JournalHead Journal::head() const {
  const formats::Json json = formats::parse_json(parts_of(content_).first, content_.string());
  JournalHead head;
  head.title = json.required("title").text();
  head.stamp = json.required("stamp").text();
  head.since = json.required("since").text();
  head.until = json.required("until").text();
  const std::string& digits = json.required("path").text();
  std::string path;
  for (std::size_t k = 0; k + 1 < digits.size(); k += 2)
    path += static_cast<char>(std::stoi(digits.substr(k, 2), nullptr, 16));
  if (!path.empty()) head.path = path;
  return head;
}

formats::Session Journal::session() const {
  return formats::parse_session(parts_of(content_).second, content_.string());
}

std::string Journal::text() const {
  return parts_of(content_).second;
}

void Journal::clear() {
  std::error_code ignored;
  fs::remove(content_, ignored);
}

std::string time_of_day() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[16];
  ::localtime_r(&now, &parts);
  std::strftime(text, sizeof text, "%H:%M", &parts);
  return text;
}

std::string left_words(const JournalHead& head) {
  return head.title + ", edited " +
         (head.since == head.until ? "at " + head.since : "from " + head.since + " to " + head.until);
}

}  // namespace app
