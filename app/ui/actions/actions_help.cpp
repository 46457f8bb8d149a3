// Lessons and help.
#include "app/session/navigation.hpp"
#include "app/ui/actions/action_rows.hpp"
#include "core/lessons/lessons.hpp"

namespace app::rows {
namespace {

bool in_lesson(const Newest& view) {
  return view.selection.lesson && !view.selection.cursor;
}
/// Arrows go on and back even where the matrix has the keyboard.
bool anywhere_in_lesson(const Newest& view) {
  return view.selection.lesson.has_value();
}

void add_steps(Rows& rows) {
  const auto row = [&](const char* id, const char* title, Key key, int by, const char* sheet) {
    const auto here = by == 0 ? in_lesson : anywhere_in_lesson;
    rows.push_back(
        {.id = id,
         .title = title,
         .menu = "Lessons",
         .group = 1,
         .keys = {plain(key)},
         .here = here,
         .sheet = sheet,
         .why_not = unless([](const Situation& now) { return now.shown.selection.lesson.has_value(); },
                           "no lesson is under way"),
         .command = always(GoInLesson{by})});
  };
  row("lesson/back", "Step back", Key::left, -1, "In a lesson: back, next");
  row("lesson/next", "Next step", Key::right, 1, "In a lesson: back, next");
  row("lesson/again", "Start the step again", Key::r, 0, "In a lesson: start the step again");
}

/// Opens a dialog whose search field is empty.
std::function<Asked(const Situation&)> searches(Dialog dialog) {
  return looks([dialog](View& view) {
    view.forms.search = {};
    view.forms.dialog = dialog;
  });
}

/// "Causal attention in eleven steps · 6 of 11": how many of its steps were tried.
std::string title_with_progress(const core::lessons::Lesson& lesson, const Situation& s) {
  const std::size_t n = lesson.steps.size();
  const auto known = s.progress ? s.progress->find(lesson.name) : decltype(s.progress->end())();
  if (!s.progress || known == s.progress->end() || known->second.done.empty()) return lesson.title;
  const std::size_t done = known->second.done.size();
  return std::string(lesson.title) + " · " +
         (done == n ? "all " + std::to_string(n) + " tried"
                    : std::to_string(done) + " of " + std::to_string(n));
}

}  // namespace

std::vector<Action> of_lessons(const Situation& s) {
  Rows rows;
  for (const auto& lesson : core::lessons::lessons())
    rows.push_back({.id = std::string("lessons/") + lesson.name,
                    .title = title_with_progress(lesson, s),
                    .menu = "Lessons",
                    .about = lesson.about,
                    .command = always(StartLesson{lesson.name}),
                    .checked = [name = lesson.name](const Situation& now) {
                      return now.shown.selection.lesson && now.shown.selection.lesson->name == name;
                    }});
  add_steps(rows);
  rows.push_back(
      {.id = "lesson/leave",
       .title = "Leave the lesson",
       .menu = "Lessons",
       .group = 1,
       .why_not = unless([](const Situation& now) { return now.shown.selection.lesson.has_value(); },
                         "no lesson is under way"),
       .command = always(LeaveLesson{})});
  return rows;
}

std::vector<Action> of_help(const Situation&) {
  Rows rows;
  rows.push_back({.id = "help/palette",
                  .title = "Find an action…",
                  .menu = "Help",
                  .about = "Any action, preset, stage, lesson or setting, by some of its letters",
                  .keys = {ctrl_shift(Key::p)},
                  .sheet = "Find any action, preset, stage, lesson or setting",
                  .command = searches(Dialog::palette)});
  rows.push_back({.id = "help/keys",
                  .title = "Keys",
                  .menu = "Help",
                  .about = "All keys, to be looked through or searched",
                  .keys = {plain(Key::f1), plain(Key::question)},
                  .sheet = "This sheet",
                  .command = searches(Dialog::keys)});
  rows.push_back({.id = "help/glossary",
                  .title = "Glossary",
                  .menu = "Help",
                  .about = "The words of the field, each in a sentence or two",
                  .command = shows(Dialog::glossary)});
  rows.push_back(
      {.id = "help/tour",
       .title = "Take the tour",
       .menu = "Help",
       .group = 1,
       .about = "Five things to do in this window, a minute in all; Ctrl+Z takes back what they change",
       .command = [](const Situation& now) { return look(tour_from(now.newest.model)); }});
  rows.push_back(
      {.id = "help/about", .title = "About", .menu = "Help", .group = 2, .command = shows(Dialog::about)});
  rows.push_back({.id = "help/focus",
                  .title = "To the next control, into a region, out of it",
                  .written = "arrows, Enter, Esc"});
  return rows;
}

}  // namespace app::rows
