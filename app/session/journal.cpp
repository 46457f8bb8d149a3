#include "app/session/journal.hpp"

#include <algorithm>
#include <ctime>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/files/json.hpp"

namespace app {
namespace {

namespace formats = core::formats;

constexpr char session_separator = '\x1e';  // cannot occur in JSON

/// Returns where the sessions begin: after the line of JSON with the head.
std::size_t end_of_head(std::string_view text, const std::string& place) {
  const std::size_t end = text.find('\n');
  if (end >= max_journal_header_bytes) throw core::Error(place + ": expected two parts, got one");
  return end + 1;
}

/// Returns "10:32" for a time on the same day as now, else the time unchanged.
std::string short_moment(const std::string& moment, const std::string& now) {
  const std::size_t day = now.find(' ');
  return day != now.npos && moment.starts_with(now.substr(0, day + 1)) ? moment.substr(day + 1) : moment;
}

}  // namespace

std::string journal_text(const JournalHeader& header, const JournalSessions& sessions) {
  using formats::json_boolean, formats::json_quoted;
  // A path may be any bytes, which JSON cannot hold.
  const std::string path = core::text::hexadecimal(header.path ? header.path->native() : "");
  return formats::json_object({{"title", json_quoted(header.title)},
                               {"path", json_quoted(path)},
                               {"stamp", json_quoted(header.stamp)},
                               {"since", json_quoted(header.since)},
                               {"until", json_quoted(header.until)},
                               {"edits", std::to_string(header.n_edits)},
                               {"saved", json_boolean(header.is_saved)},
                               {"lesson", json_quoted(header.lesson)},
                               {"lesson_title", json_quoted(header.lesson_title)},
                               {"step", std::to_string(header.lesson_step)},
                               {"run", json_boolean(header.has_run)}}) +
         "\n" + sessions.own + session_separator + sessions.in_lesson +
         (sessions.run.empty() ? "" : session_separator + sessions.run);
}

JournalHeader parse_journal_header(std::string_view begin, const std::string& place) {
  const formats::Json json = formats::parse_json(begin.substr(0, end_of_head(begin, place)), place);
  JournalHeader header;
  header.title = json.required("title").text();
  header.stamp = json.required("stamp").text();
  header.since = json.required("since").text();
  header.until = json.required("until").text();
  header.n_edits = json.required("edits").whole(0);
  header.is_saved = json.required("saved").boolean();
  header.lesson = json.required("lesson").text();
  header.lesson_title = json.required("lesson_title").text();
  header.lesson_step = json.required("step").whole(0);
  if (const auto has_run = json.member("run")) header.has_run = has_run->boolean();
  const formats::Json digits = json.required("path");
  const auto path = core::text::parse_hexadecimal(digits.text());
  if (!path) digits.fail("two digits for each byte");
  if (!path->empty()) header.path = *path;
  return header;
}

JournalSessions parse_journal_sessions(std::string_view text, const std::string& place) {
  const std::size_t begin = end_of_head(text, place), end = text.find(session_separator, begin);
  if (end == text.npos) throw core::Error(place + ": expected two sessions, got one");
  const std::size_t run = std::min(text.find(session_separator, end + 1), text.size());
  return {std::string(text.substr(begin, end - begin)), std::string(text.substr(end + 1, run - end - 1)),
          std::string(text.substr(std::min(run + 1, text.size())))};
}

std::string local_time_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[32];
  ::localtime_r(&now, &parts);
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

std::string journal_summary(const JournalHeader& header, const std::string& now) {
  const std::string since = short_moment(header.since, now), until = short_moment(header.until, now);
  const std::string when = since == until ? "at " + since : "from " + since + " to " + until;
  if (header.has_run && header.is_saved && header.lesson.empty()) return "A run of training, " + when;
  return header.title + (header.lesson.empty() ? "" : ", in the lesson " + header.lesson_title) + ", " +
         core::text::counted(header.n_edits, "edit") + (header.has_run ? ", and a run of training, " : ", ") +
         when;
}

}  // namespace app
