#include "app/ui/actions/actions.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "app/ui/actions/action_rows.hpp"
#include "app/ui/actions/keys.hpp"

namespace app {
namespace {

constexpr std::array table{Subject{"File", rows::of_file},       Subject{"Edit", rows::of_edit},
                           Subject{"View", rows::of_view},       Subject{"Model", rows::of_model},
                           Subject{"Compare", rows::of_compare}, Subject{"Lessons", rows::of_lessons},
                           Subject{"Help", rows::of_help}};

/// "?" and "+" are Shift with another key on most layouts.
KeyPress as_named(KeyPress press) {
  if (press.key == Key::slash && press.shift) press.key = Key::question;
  if (press.key == Key::question || press.key == Key::plus) press.shift = false;
  return press;
}

/// A title without the dots that say that a dialog follows.
std::string without_dots(std::string title) {
  constexpr std::string_view dots = "…";
  if (title.ends_with(dots)) title.resize(title.size() - dots.size());
  return title;
}

}  // namespace

std::span<const Subject> subjects() {
  return table;
}

std::vector<Action> actions(const Situation& situation) {
  std::vector<Action> all;
  for (const Subject& subject : table) {
    std::vector<Action> part = subject.actions(situation);
    std::move(part.begin(), part.end(), std::back_inserter(all));
  }
  return all;
}

const Action* find_action(std::span<const Action> all, std::string_view id) {
  const auto it = std::find_if(all.begin(), all.end(), [&](const Action& a) { return a.id == id; });
  return it == all.end() ? nullptr : &*it;
}

const Action* action_of(std::span<const Action> all, KeyPress press, const Pending& view) {
  press = as_named(press);
  const auto it = std::find_if(all.begin(), all.end(), [&](const Action& a) {
    return a.command && std::find(a.keys.begin(), a.keys.end(), press) != a.keys.end() && a.here(view);
  });
  return it == all.end() ? nullptr : &*it;
}

std::string why_not(const Action& action, const Situation& situation) {
  return action.why_not ? action.why_not(situation) : "";
}

void perform(const Action& action, const Situation& situation, Commands& commands) {
  if (!action.command || !why_not(action, situation).empty()) return;
  for (Command& command : action.command(situation)) commands.add(std::move(command));
}

void perform(std::string_view id, const Situation& situation, Commands& commands) {
  const std::vector<Action> all = actions(situation);
  if (const Action* action = find_action(all, id)) perform(*action, situation, commands);
}

std::string key_words(const Action& action, const Pending& newest) {
  return action.keys.empty() || !action.here(newest) ? "" : written(action.keys.front());
}

std::vector<KeyLine> key_sheet(std::span<const Action> all) {
  std::vector<KeyLine> lines;
  std::vector<KeyPress> keys;  // of the last line
  std::string menu;            // where the rows around it stand
  for (const Action& action : all) {
    if (action.keys.empty() && action.written.empty()) continue;
    const std::string words = action.sheet.empty() ? without_dots(action.title) : action.sheet;
    if (!action.menu.empty()) menu = action.menu.substr(0, action.menu.find('/'));
    if (lines.empty() || lines.back().words != words) {
      lines.push_back({action.written, words, menu});
      keys.clear();
    }
    keys.insert(keys.end(), action.keys.begin(), action.keys.end());
    if (action.written.empty()) lines.back().keys = written(keys);
  }
  return lines;
}

}  // namespace app
