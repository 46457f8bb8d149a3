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
#include "core/text/words.hpp"

namespace app {
namespace {

namespace fs = std::filesystem;
namespace formats = core::formats;

constexpr const char* lock_ending = ".lock";
constexpr const char* content_ending = ".journal";
constexpr std::size_t longest_head = std::size_t{64} << 10;
constexpr std::size_t largest_journal = 2 * formats::largest_session + longest_head;
constexpr char next_text = '\x1e';  // which JSON has no place for

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

/// Where the sessions begin: behind a line of JSON about the work.
std::size_t end_of_head(const std::string& text, const fs::path& content) {
  const std::size_t end = text.find('\n');
  if (end >= longest_head) throw core::Error(content.string() + ": expected two parts, got one");
  return end + 1;
}

/// "10:32" of a moment that is of the same day as now.
std::string short_moment(const std::string& moment, const std::string& now) {
  const std::size_t day = now.find(' ');
  return day != now.npos && moment.starts_with(now.substr(0, day + 1)) ? moment.substr(day + 1) : moment;
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
  const auto member = [](const char* key, const std::string& text) {
    return std::string("\"") + key + "\": " + formats::json_quoted(text);
  };
  // Somebody may have removed the folder, and without its lock nobody would find the journal.
  if (std::error_code error; !fs::exists(lock_path_, error)) lock_in(content_.parent_path());
  // A path may be any bytes, which JSON has no place for.
  const std::string path = core::text::hexadecimal(head.path ? head.path->native() : "");
  formats::write_atomically(
      content_,
      "{" + member("title", head.title) + ", " + member("path", path) + ", " + member("stamp", head.stamp) +
          ", " + member("since", head.since) + ", " + member("until", head.until) + ", \"edits\": " +
          std::to_string(head.n_edits) + ", \"saved\": " + (head.is_saved ? "true" : "false") + ", " +
          member("lesson", head.lesson) + ", " + member("lesson_title", head.lesson_title) +
          ", \"step\": " + std::to_string(head.lesson_step) + "}\n" + session + next_text + in_lesson);
}

JournalHead Journal::head() const {
  const std::string begin = formats::read_begin(content_, longest_head);
  const formats::Json json =
      formats::parse_json(std::string_view(begin).substr(0, end_of_head(begin, content_)), content_.string());
  JournalHead head;
  head.title = json.required("title").text();
  head.stamp = json.required("stamp").text();
  head.since = json.required("since").text();
  head.until = json.required("until").text();
  head.n_edits = json.required("edits").whole(0);
  head.is_saved = json.required("saved").boolean();
  head.lesson = json.required("lesson").text();
  head.lesson_title = json.required("lesson_title").text();
  head.lesson_step = json.required("step").whole(0);
  const formats::Json digits = json.required("path");
  const auto path = core::text::bytes_of_hexadecimal(digits.text());
  if (!path) digits.fail("two digits for each byte");
  if (!path->empty()) head.path = *path;
  return head;
}

formats::Session Journal::session() const {
  return formats::parse_session(texts().own, content_.string());
}

Journal::Texts Journal::texts() const {
  const std::string text = formats::read_file(content_, largest_journal);
  const std::size_t begin = end_of_head(text, content_), end = text.find(next_text, begin);
  if (end == text.npos) throw core::Error(content_.string() + ": expected two sessions, got one");
  return {text.substr(begin, end - begin), text.substr(end + 1)};
}

void Journal::clear() {
  std::error_code ignored;
  fs::remove(content_, ignored);
}

std::string moment_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[32];
  ::localtime_r(&now, &parts);
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

std::string left_words(const JournalHead& head, const std::string& now) {
  const std::string since = short_moment(head.since, now), until = short_moment(head.until, now);
  return head.title + (head.lesson.empty() ? "" : ", in the lesson " + head.lesson_title) + ", " +
         core::text::counted(head.n_edits, "edit") +
         (since == until ? ", at " + since : ", from " + since + " to " + until);
}

}  // namespace app
