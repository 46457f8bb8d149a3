#include "app/session/journal.hpp"

#include <ctime>
#include <system_error>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/files/json.hpp"
#include "core/system/file.hpp"

namespace app {

std::optional<std::filesystem::path> lasting_path(const std::filesystem::path& path) {
  if (core::system::own_descriptor(path)) return std::nullopt;
  std::error_code nowhere;
  const std::filesystem::path whole = std::filesystem::absolute(path, nowhere);
  return nowhere ? path : whole;
}

namespace {

namespace formats = core::formats;

constexpr char next_text = '\x1e';  // which JSON has no place for

/// Where the sessions begin: behind a line of JSON about the work.
std::size_t end_of_head(std::string_view text, const std::string& place) {
  const std::size_t end = text.find('\n');
  if (end >= longest_journal_head) throw core::Error(place + ": expected two parts, got one");
  return end + 1;
}

/// "10:32" of a moment that is of the same day as now.
std::string short_moment(const std::string& moment, const std::string& now) {
  const std::size_t day = now.find(' ');
  return day != now.npos && moment.starts_with(now.substr(0, day + 1)) ? moment.substr(day + 1) : moment;
}

}  // namespace

std::string journal_text(const JournalHead& head, const JournalTexts& sessions) {
  const auto member = [](const char* key, const std::string& text) {
    return std::string("\"") + key + "\": " + formats::json_quoted(text);
  };
  // A path may be any bytes, which JSON has no place for.
  const std::string path = core::text::hexadecimal(head.path ? head.path->native() : "");
  return "{" + member("title", head.title) + ", " + member("path", path) + ", " +
         member("stamp", head.stamp) + ", " + member("since", head.since) + ", " +
         member("until", head.until) + ", \"edits\": " + std::to_string(head.n_edits) +
         ", \"saved\": " + (head.is_saved ? "true" : "false") + ", " + member("lesson", head.lesson) + ", " +
         member("lesson_title", head.lesson_title) + ", \"step\": " + std::to_string(head.lesson_step) +
         "}\n" + sessions.own + next_text + sessions.in_lesson;
}

JournalHead journal_head(std::string_view begin, const std::string& place) {
  const formats::Json json = formats::parse_json(begin.substr(0, end_of_head(begin, place)), place);
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

JournalTexts journal_texts(std::string_view text, const std::string& place) {
  const std::size_t begin = end_of_head(text, place), end = text.find(next_text, begin);
  if (end == text.npos) throw core::Error(place + ": expected two sessions, got one");
  return {std::string(text.substr(begin, end - begin)), std::string(text.substr(end + 1))};
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

namespace {

namespace fs = std::filesystem;
namespace formats = core::formats;

constexpr const char* lock_ending = ".lock";
constexpr const char* content_ending = ".journal";
constexpr std::size_t largest_journal = 2 * formats::largest_session + longest_journal_head;

fs::path sibling_lock(fs::path content) {
  return content.replace_extension(lock_ending);
}

}  // namespace

Journal::Journal(fs::path content, core::system::LockFile lock)
    : content_(std::move(content)), lock_path_(sibling_lock(content_)), lock_(std::move(lock)) {}

Journal::Journal(const fs::path& folder) {
  lock_in(folder);
}

/// Takes a name in a folder that nobody has, and the lock on it.
void Journal::lock_in(const fs::path& folder) {
  std::error_code error, ignored;
  fs::create_directories(folder, error);
  if (error) throw core::Error(core::system::cannot_be_written(folder, error.value()));
  fs::permissions(folder, fs::perms::owner_all, ignored);  // what is in it is the work of one person
  do {
    content_ = folder / (core::system::random_name() + content_ending);
    lock_path_ = sibling_lock(content_);
    lock_ = core::system::LockFile::create(lock_path_, folder);
  } while (!lock_);  // another window may look at it in the moment before it is locked: then another name
}

Journal::~Journal() {
  std::error_code ignored;
  if (!fs::exists(content_, ignored)) fs::remove(lock_path_, ignored);
}

std::vector<std::shared_ptr<Journal>> Journal::left_in(const fs::path& folder) {
  std::vector<std::shared_ptr<Journal>> left;
  for (const fs::path& path : core::system::list_folder(folder).paths) {
    if (path.extension() != lock_ending) continue;
    auto lock = core::system::LockFile::take(path);
    if (!lock) continue;
    fs::path content = path;
    content.replace_extension(content_ending);
    std::shared_ptr<Journal> journal(new Journal(content, *std::move(lock)));
    std::error_code error;
    if (fs::exists(content, error)) left.push_back(std::move(journal));
  }
  return left;
}

void Journal::write(const JournalHead& head, const std::string& session, const std::string& in_lesson) {
  // Somebody may have removed the folder, and without its lock nobody would find the journal.
  if (std::error_code error; !fs::exists(lock_path_, error)) lock_in(content_.parent_path());
  core::system::write_atomically(content_, journal_text(head, {session, in_lesson}));
}

JournalHead Journal::head() const {
  return journal_head(core::system::read_begin(content_, longest_journal_head), content_.string());
}

formats::Session Journal::session() const {
  return formats::parse_session(texts().own, content_.string());
}

JournalTexts Journal::texts() const {
  return journal_texts(core::system::read_file(content_, largest_journal), content_.string());
}

void Journal::clear() {
  std::error_code ignored;
  fs::remove(content_, ignored);
}

}  // namespace app
