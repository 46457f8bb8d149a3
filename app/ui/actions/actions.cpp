#include "app/ui/actions/actions.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "app/ui/actions/action_rows.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/base/words.hpp"

namespace app {

namespace {

constexpr std::array table{Subject{"File", rows::of_file},       Subject{"Edit", rows::of_edit},
                           Subject{"View", rows::of_view},       Subject{"Model", rows::of_model},
                           Subject{"Compare", rows::of_compare}, Subject{"Lessons", rows::of_lessons},
                           Subject{"Help", rows::of_help}};

/// Normalizes "?" and "+", which are Shift with another key on most layouts.
KeyPress as_named(KeyPress press) {
  if (press.key == Key::slash && press.shift) press.key = Key::question;
  if (press.key == Key::question || press.key == Key::plus) press.shift = false;
  return press;
}

/// Returns a title without the final "…" that announces a dialog.
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

namespace {

/// Returns the action of a key in a view, or nullptr.
const Action* action_of(std::span<const Action> all, KeyPress press, const Pending& view) {
  press = as_named(press);
  const auto it = std::find_if(all.begin(), all.end(), [&](const Action& a) {
    return a.command && std::find(a.keys.begin(), a.keys.end(), press) != a.keys.end() && a.here(view);
  });
  return it == all.end() ? nullptr : &*it;
}

}  // namespace

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
  std::string menu;            // of the last row that has one
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

namespace {

constexpr int name_bonus = 3;  // for each letter, if all are found in the name

/// Returns a path of menus from a level on, with another separator.
std::string path_words(std::string_view path, std::size_t level, std::string_view between) {
  std::string words;
  for (std::size_t at = 0; !path.empty(); ++at) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (at >= level) words.append(words.empty() ? "" : between).append(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return words;
}

struct Ranked {
  FoundAction found;
  int score = 0;
  bool possible = true;
};

std::optional<Ranked> ranked(const Action& action, std::string_view query) {
  const std::string submenus = path_words(action.menu, 1, ": ");
  FoundAction found{&action,
                    submenus.empty() ? action.title : submenus + ": " + action.title,
                    path_words(action.menu, 0, " › "),
                    {}};
  auto match = fuzzy_match(query, found.name);
  if (match)
    match->score += name_bonus * static_cast<int>(match->lit.size());
  else
    match = fuzzy_match(query, found.name + "\n" + found.place);
  if (!match) return std::nullopt;
  std::erase_if(match->lit, [&](std::size_t at) { return at >= found.name.size(); });
  found.lit = std::move(match->lit);
  return Ranked{std::move(found), match->score};
}

}  // namespace

std::vector<FoundAction> found_actions(std::span<const Action> all, std::string_view query,
                                       const std::function<bool(const Action&)>& is_possible) {
  std::vector<Ranked> list;
  for (const Action& action : all) {
    if (!action.command) continue;
    if (auto row = ranked(action, query)) {
      row->possible = query.empty() || !is_possible || is_possible(action);
      list.push_back(std::move(*row));
    }
  }
  std::stable_sort(list.begin(), list.end(), [](const Ranked& a, const Ranked& b) {
    return std::pair(a.score, a.possible) > std::pair(b.score, b.possible);
  });
  std::vector<FoundAction> found;
  for (Ranked& row : list) found.push_back(std::move(row.found));
  return found;
}

namespace {

using core::text::lower;

constexpr int letter_score = 1, start_score = 8, front_score = 2;
constexpr int run_score = 4, run_from_start_score = 12;
constexpr int nowhere = -1;

/// Whether a byte belongs to a word: ASCII letters and digits, and bytes of non-ASCII characters.
bool is_in_word(char c) {
  const char l = lower(c);
  return (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80;
}

bool starts_word(std::string_view text, std::size_t at) {
  return is_in_word(text[at]) && (at == 0 || !is_in_word(text[at - 1]));
}

/// Best match of the first letters of a query word that ends at one byte of the text.
struct Ending {
  int score = nowhere;
  int run = 0;           ///< score of the next letter if it is adjacent
  std::size_t from = 0;  ///< position of the letter before
};

int worth(std::string_view text, std::size_t at) {
  return letter_score + (starts_word(text, at) ? start_score : 0) + (at == 0 ? front_score : 0);
}

/// Returns the endings with one more letter; before is nullptr for the first letter of a word.
std::vector<Ending> next_endings(const std::vector<Ending>* before, char wanted, std::string_view text) {
  std::vector<Ending> endings(text.size());
  std::size_t best = 0;  // of those that end further left
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (before && at > 1 && (*before)[at - 2].score > (*before)[best].score) best = at - 2;
    if (lower(text[at]) != wanted) continue;
    const int next = starts_word(text, at) ? run_from_start_score : run_score;
    const int here = worth(text, at);
    if (!before) {
      endings[at] = {here, next, 0};
      continue;
    }
    if (at > 1 && (*before)[best].score != nowhere) endings[at] = {(*before)[best].score + here, next, best};
    if (at == 0 || (*before)[at - 1].score == nowhere) continue;
    const Ending& left = (*before)[at - 1];
    const int run = std::max(left.run, next == run_from_start_score ? next : 0);
    if (left.score + letter_score + run >= endings[at].score)
      endings[at] = {left.score + letter_score + run, run, at - 1};
  }
  return endings;
}

/// Adds one word of the query to a match; returns false when the text does not contain it.
bool add_word(std::string_view word, std::string_view text, FuzzyMatch& match) {
  std::vector<std::vector<Ending>> steps;
  for (const char c : word)
    steps.push_back(next_endings(steps.empty() ? nullptr : &steps.back(), lower(c), text));
  const auto& last = steps.back();
  const auto best = std::max_element(last.begin(), last.end(),
                                     [](const Ending& a, const Ending& b) { return a.score < b.score; });
  if (best == last.end() || best->score == nowhere) return false;
  match.score += best->score;
  auto at = static_cast<std::size_t>(best - last.begin());
  for (std::size_t k = steps.size(); k-- > 0;) {
    match.lit.push_back(at);
    at = steps[k][at].from;
  }
  return true;
}

}  // namespace

std::optional<FuzzyMatch> fuzzy_match(std::string_view query, std::string_view text) {
  FuzzyMatch match;
  for (const std::string_view word : core::text::words_in(query))
    if (!add_word(word, text, match)) return std::nullopt;
  std::sort(match.lit.begin(), match.lit.end());
  match.lit.erase(std::unique(match.lit.begin(), match.lit.end()), match.lit.end());
  return match;
}

namespace {

/// Label of the key KeyPress::ctrl on keyboards of this system.
constexpr const char* ctrl_words =
#ifdef __APPLE__
    "Control+";

#else

    "Ctrl+";

#endif

std::string modifiers(const KeyPress& press) {
  return std::string(press.ctrl ? ctrl_words : "") + (press.alt ? "Alt+" : "") +
         (press.shift ? "Shift+" : "");
}

std::string nth_letter(char first, Key base, Key key) {
  return std::string(1, static_cast<char>(first + (static_cast<int>(key) - static_cast<int>(base))));
}

std::string name(Key key) {
  if (key >= Key::a && key <= Key::z) return nth_letter('A', Key::a, key);
  if (key >= Key::digit_0 && key <= Key::digit_9) return nth_letter('0', Key::digit_0, key);
  if (key >= Key::f1 && key <= Key::f12)
    return "F" + std::to_string(1 + static_cast<int>(key) - static_cast<int>(Key::f1));
  switch (key) {
    case Key::escape:
      return "Esc";
    case Key::enter:
      return "Enter";
    case Key::tab:
      return "Tab";
    case Key::delete_:
      return "Delete";
    case Key::backspace:
      return "Backspace";
    case Key::left:
      return "←";
    case Key::right:
      return "→";
    case Key::up:
      return "↑";
    case Key::down:
      return "↓";
    case Key::home:
      return "Home";
    case Key::end:
      return "End";
    case Key::page_up:
      return "Page up";
    case Key::page_down:
      return "Page down";
    case Key::bracket_left:
      return "[";
    case Key::bracket_right:
      return "]";
    case Key::question:
      return "?";
    case Key::slash:
      return "/";
    case Key::space:
      return "Space";
    case Key::plus:
      return "+";
    case Key::minus:
      return "−";
    default:
      return "";
  }
}

bool are_digits_in_a_row(std::span<const KeyPress> presses) {
  if (presses.size() < 3 || presses.front().key < Key::digit_0 || presses.back().key > Key::digit_9)
    return false;
  for (std::size_t k = 1; k < presses.size(); ++k)
    if (static_cast<int>(presses[k].key) != static_cast<int>(presses[k - 1].key) + 1) return false;
  return true;
}

}  // namespace

std::string written(const KeyPress& press) {
  return modifiers(press) + name(press.key);
}

std::string written(std::span<const KeyPress> presses) {
  if (presses.empty()) return "";
  const std::string held = modifiers(presses.front());
  const auto each = [&](auto holds) { return std::all_of(presses.begin(), presses.end(), holds); };
  const bool same = each([&](const KeyPress& p) { return modifiers(p) == held; });
  if (same && are_digits_in_a_row(presses))
    return held + name(presses.front().key) + " … " + name(presses.back().key);
  const bool letters =
      same && each([](const KeyPress& p) { return core::text::character_count(name(p.key)) == 1; });
  std::string text = written(presses.front());
  for (const KeyPress& press : presses.subspan(1))
    text += letters ? " " + name(press.key) : ", " + written(press);
  return text;
}

void handle_key(const KeyPress& press, const Situation& situation, Commands& commands) {
  const Forms& forms = situation.forms;
  // Quitting loses nothing: recoverable work stays for the next run.
  const bool may_quit = forms.dialog == Dialog::recovery;
  if (forms.dialog != Dialog::none && !may_quit) return;
  if (forms.typed && forms.typed->waiting && !press.ctrl) return;  // it belongs to the field
  const std::vector<Action> all = actions(situation);
  if (const Action* action = action_of(all, press, situation.pending);
      action && (!may_quit || action->id == "file/quit"))
    perform(*action, situation, commands);
}

}  // namespace app
