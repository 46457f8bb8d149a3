#include "app/session/recovery.hpp"

#include <algorithm>
#include <ctime>
#include <system_error>
#include <thread>
#include <utility>

#include "app/session/remembered.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/files/json.hpp"

namespace app {
namespace {

namespace fs = std::filesystem;
namespace formats = core::formats;
using namespace std::chrono_literals;
using Clock = Jobs::Clock;

constexpr char next_text = '\x1e';  // cannot occur in JSON
constexpr const char* lock_ending = ".lock";
constexpr const char* content_ending = ".journal";
constexpr std::size_t largest_journal = 2 * formats::largest_session + longest_journal_head;

/// Returns where the sessions begin: after the line of JSON with the head.
std::size_t end_of_head(std::string_view text, const std::string& place) {
  const std::size_t end = text.find('\n');
  if (end >= longest_journal_head) throw core::Error(place + ": expected two parts, got one");
  return end + 1;
}

/// Returns "10:32" for a time on the same day as now, else the time unchanged.
std::string short_moment(const std::string& moment, const std::string& now) {
  const std::size_t day = now.find(' ');
  return day != now.npos && moment.starts_with(now.substr(0, day + 1)) ? moment.substr(day + 1) : moment;
}

}  // namespace

std::string journal_text(const JournalHead& head, const JournalTexts& sessions) {
  const auto member = [](const char* key, const std::string& text) {
    return std::string("\"") + key + "\": " + formats::json_quoted(text);
  };
  // A path may be any bytes, which JSON cannot hold.
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
  if (error) throw core::Error(core::system::cannot_be_written(folder, error.value()));
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
  // The folder may have been removed, and without its lock file the journal would not be found.
  if (std::error_code error; !fs::exists(lock_path_, error)) lock_in(content_.parent_path());
  core::system::write_atomically(content_, journal_text(head, {session, in_lesson}));
}

JournalHead Journal::head() const {
  return journal_head(core::system::read_begin(content_, longest_journal_head), content_.string());
}

JournalTexts Journal::texts() const {
  return journal_texts(core::system::read_file(content_, largest_journal), content_.string());
}

void Journal::clear() {
  std::error_code ignored;
  fs::remove(content_, ignored);
}

namespace {

constexpr auto rest = 300ms;               // between two writes
constexpr auto again = 10s;                // after a write has failed more than once
constexpr auto poll_interval = 10ms;       // between two checks of the token
constexpr auto look_again = 250ms;         // for journals of closing windows
constexpr auto promised = 900ms;           // from an edit to the end of its write, if possible
constexpr double share_of_a_thread = 0.2;  // for writing, if it takes longer

/// Returns the pause before the next write: an edit just after the start of a write waits for its end, the
/// pause and the next write.
Clock::duration pause_after(Clock::duration writing) {
  if (2 * writing + rest <= promised) return rest;
  return std::chrono::duration_cast<Clock::duration>(writing / share_of_a_thread);
}

}  // namespace

void Recorder::begin(const std::filesystem::path& folder) {
  folder_ = folder;
  look_until_ = Clock::now() + looks_for_left;
  try {
    left_ = Journal::left_in(folder);
    journal_ = std::make_shared<Journal>(folder);
  } catch (const core::Error& error) {
    why_not_ = error.what();
    throw;
  }
}

/// Whether there is a journal; retries one that could not be created.
bool Recorder::has_journal(const Recordable& work) {
  if (journal_ || folder_.empty() || !work.is_modified() || Clock::now() < next_) return journal_ != nullptr;
  try {
    journal_ = std::make_shared<Journal>(folder_);
    return true;
  } catch (const core::Error&) {
    next_ = Clock::now() + again;
    if (!why_not_.empty()) tell(std::exchange(why_not_, ""));
    return false;
  }
}

bool Recorder::finds_more() {
  const auto now = Clock::now();
  if (now >= look_until_ || now < look_next_) return false;
  look_next_ = now + look_again;
  const auto more = Journal::left_in(folder_);
  left_.insert(left_.end(), more.begin(), more.end());
  return !more.empty();
}

void Recorder::tell(const std::string& why) {
  queue_.jobs().tell({not_recorded(why)});
}

Recorder::Entry Recorder::entry_of(const Recordable& work) {
  const Origin& origin = work.own.origin;
  if (since_.empty()) since_ = moment_now();
  Entry entry{{origin.title, origin.path, origin.stamp, since_, moment_now()},
              {{work.own.model, view_text(work.view), core::importing::not_supported_words(origin.account)},
               work.own.is_attached() ? nullptr : without_pass(work.own.whole)},
              {}};
  entry.head.is_saved = !work.own.is_modified();
  entry.head.n_edits = n_edits_before_ + work.own.n_unsaved_edits();
  if (work.lesson) {
    entry.head.lesson = work.lesson->lesson->name;
    entry.head.lesson_title = work.lesson->lesson->title;
    entry.head.lesson_step = work.lesson->step;
    entry.head.n_edits += work.tried->n_unsaved_edits();
    if (work.tried->is_modified())
      entry.tried =
          Entry::Text{{work.tried->model, view_text(work.view), {}}, without_pass(work.tried->whole)};
  }
  entry.head.n_edits = std::max<std::size_t>(entry.head.n_edits, 1);
  return entry;
}

std::string Recorder::Entry::Text::text() const {
  if (!whole) return formats::session_text(session);
  return core::experiment::experiment_text(*whole->model, whole->experiment, session.view, "/");
}

bool Recorder::Entry::Text::is_of(const Document& document) const {
  if (!whole) return document.model == session.model;
  return document.whole && document.whole->experiment == whole->experiment;
}

void Recorder::Entry::write_to(Journal& journal) const {
  journal.write(head, own.text(), tried ? tried->text() : "");
}

bool Recorder::Entry::is_of(const Recordable& work) const {
  const Origin& origin = work.own.origin;
  if (!own.is_of(work.own) || head.path != origin.path || head.stamp != origin.stamp) return false;
  if (!work.lesson) return head.lesson.empty();
  if (head.lesson != work.lesson->lesson->name || head.lesson_step != work.lesson->step) return false;
  return tried ? tried->is_of(*work.tried) : !work.tried->is_modified();
}

std::shared_ptr<const Recorder::Entry> Recorder::exchange_next(std::shared_ptr<const Entry> entry) {
  const std::lock_guard lock(mutex_);
  return std::exchange(next_entry_, std::move(entry));
}

void Recorder::follow(const Recordable& work) {
  if (!has_journal(work)) return;
  if (!work.is_modified()) {
    exchange_next(nullptr);
    newest_.reset();
    if (queue_.is_busy()) return;
    if (!is_clear_) journal_->clear();
    is_clear_ = true;
    since_.clear();
    n_edits_before_ = 0;
    return;
  }
  if (is_clear_ || !newest_ || !newest_->is_of(work)) {
    newest_.reset();  // so that it is retried if this throws
    const auto entry = std::make_shared<const Entry>(entry_of(work));
    exchange_next(entry);
    newest_ = entry;
    is_clear_ = false;
  }
  if (queue_.is_busy()) return;
  {
    const std::lock_guard lock(mutex_);
    if (!next_entry_) return;
  }
  begin_to_write();
}

void Recorder::begin_to_write() {
  queue_.start(
      [this, journal = journal_, at = next_](const core::Token& token) -> Jobs::Delivery {
        while (token.goes_on() && Clock::now() < at) std::this_thread::sleep_for(poll_interval);
        const auto entry = exchange_next(nullptr);
        if (!entry) return {};
        const auto begin = Clock::now();
        entry->write_to(*journal);
        const auto end = Clock::now();
        return [this, next = end + pause_after(end - begin)] {
          next_ = next;
          has_failed_ = false;
        };
      },
      [this, began = std::max(Clock::now(), next_)](const Failure& failure) {
        if (failure.is_stopped) return;
        const bool had_failed = std::exchange(has_failed_, true);
        const auto now = Clock::now();
        next_ = now + std::max<Clock::duration>(pause_after(now - began), had_failed ? again : 1s);
        newest_.reset();  // so that it is retried even without more edits
        if (!had_failed) tell(failure.words);
      });
}

void Recorder::finish(const Recordable& work) {
  if (!journal_ && !folder_.empty() && work.is_modified()) journal_ = std::make_shared<Journal>(folder_);
  if (!journal_) return;
  queue_.cancel();
  queue_.wait();
  if (work.is_modified()) {
    entry_of(work).write_to(*journal_);
  } else {
    journal_->clear();
  }
}

void Recorder::forget() {
  if (!journal_) return;
  queue_.cancel();
  queue_.wait();
  journal_->clear();
  is_clear_ = true;
}

void Recorder::restore(std::shared_ptr<Journal> journal) {
  const JournalHead head = journal->head();
  forget();
  since_ = head.since;
  n_edits_before_ = head.n_edits;
  is_clear_ = false;
  newest_.reset();
  std::erase(left_, journal);
  journal_ = std::move(journal);
}

void Recorder::keep_for_later() {
  left_.clear();
  look_until_ = {};
}

void Recorder::drop(std::size_t index) {
  if (index >= left_.size()) return;
  left_[index]->clear();
  left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(index));
}

}  // namespace app
