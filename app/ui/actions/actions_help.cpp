// Lessons and help.
#include "app/ui/actions/action_rows.hpp"
#include "core/lessons/lesson.hpp"

namespace app::rows {
namespace {

bool in_lesson(const Newest& view) {
  return view.selection.lesson && !view.selection.cursor;
}

void add_steps(Rows& rows) {
  const auto row = [&](const char* id, const char* title, Key key, int by, const char* sheet) {
    rows.push_back(
        {.id = id,
         .title = title,
         .menu = "Lessons",
         .group = 1,
         .keys = {plain(key)},
         .here = in_lesson,
         .sheet = sheet,
         .why_not = unless([](const Situation& now) { return now.shown.selection.lesson.has_value(); },
                           "no lesson is under way"),
         .command = always(GoInLesson{by})});
  };
  row("lesson/back", "Step back", Key::left, -1, "In a lesson: back, next");
  row("lesson/next", "Next step", Key::right, 1, "In a lesson: back, next");
  row("lesson/again", "Start the step again", Key::r, 0, "In a lesson: start the step again");
}

}  // namespace

std::vector<Action> of_lessons(const Situation&) {
  Rows rows;
  for (const auto& lesson : core::lessons::lessons())
    rows.push_back({.id = std::string("lessons/") + lesson.name,
                    .title = lesson.title,
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
  rows.push_back({.id = "help/glossary",
                  .title = "Glossary",
                  .menu = "Lessons",
                  .group = 2,
                  .command = shows(Dialog::glossary)});
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
                  .command = always(ChangeView{[](View& view) {
                    view.forms.search = {};
                    view.forms.dialog = Dialog::palette;
                  }})});
  rows.push_back({.id = "help/keys",
                  .title = "Keys",
                  .menu = "Help",
                  .keys = {plain(Key::f1), plain(Key::question)},
                  .sheet = "This sheet",
                  .command = shows(Dialog::keys)});
  rows.push_back({.id = "help/about", .title = "About", .menu = "Help", .command = shows(Dialog::about)});
  rows.push_back({.id = "help/focus",
                  .title = "To the next control, into a region, out of it",
                  .written = "arrows, Enter, Esc"});
  return rows;
}

}  // namespace app::rows
