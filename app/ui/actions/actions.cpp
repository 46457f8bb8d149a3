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

constexpr std::array table{
    TopLevelMenu{"File", rows::file_actions},       TopLevelMenu{"Edit", rows::edit_actions},
    TopLevelMenu{"View", rows::view_actions},       TopLevelMenu{"Model", rows::model_actions},
    TopLevelMenu{"Compare", rows::compare_actions}, TopLevelMenu{"Lessons", rows::lesson_actions},
    TopLevelMenu{"Help", rows::help_actions}};

/// Normalizes "?" and "+", which are Shift with another key on most layouts.
KeyPress normalize_key(KeyPress press) {
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

/// Returns the action of a key in a view, or nullptr.
const Action* action_for_key(std::span<const Action> all, KeyPress press, const Pending& view) {
  press = normalize_key(press);
  const auto it = std::find_if(all.begin(), all.end(), [&](const Action& a) {
    return a.command && std::find(a.keys.begin(), a.keys.end(), press) != a.keys.end() && a.keys_apply(view);
  });
  return it == all.end() ? nullptr : &*it;
}

/// Returns the keys of an action that reach the program.
std::vector<KeyPress> usable_keys(const Action& action, bool in_browser) {
  std::vector<KeyPress> keys = action.keys;
  if (in_browser) std::erase_if(keys, is_reserved_in_browsers);
  return keys;
}

}  // namespace

std::span<const TopLevelMenu> top_level_menus() {
  return table;
}

std::vector<Action> actions(const ActionContext& context) {
  std::vector<Action> all;
  for (const TopLevelMenu& top_level_menu : table) {
    std::vector<Action> part = top_level_menu.actions(context);
    std::move(part.begin(), part.end(), std::back_inserter(all));
  }
  return all;
}

const Action* find_action(std::span<const Action> all, std::string_view id) {
  const auto it = std::find_if(all.begin(), all.end(), [&](const Action& a) { return a.id == id; });
  return it == all.end() ? nullptr : &*it;
}

std::string disabled_reason(const Action& action, const ActionContext& context) {
  return action.disabled_reason ? action.disabled_reason(context) : "";
}

void perform(const Action& action, const ActionContext& context, Commands& commands) {
  if (!action.command || !disabled_reason(action, context).empty()) return;
  for (Command& command : action.command(context)) commands.add(std::move(command));
}

void perform(std::string_view id, const ActionContext& context, Commands& commands) {
  const std::vector<Action> all = actions(context);
  if (const Action* action = find_action(all, id)) perform(*action, context, commands);
}

bool is_reserved_in_browsers(const KeyPress& press) {
  constexpr std::array reserved{Key::n, Key::t, Key::w, Key::tab, Key::page_up, Key::page_down};
  return press.ctrl && std::ranges::find(reserved, press.key) != reserved.end();
}

std::string shortcut_text(const Action& action, const Pending& newest, bool in_browser) {
  const std::vector<KeyPress> keys = usable_keys(action, in_browser);
  return keys.empty() || !action.keys_apply(newest) ? "" : key_text(keys.front());
}

std::vector<KeyLine> key_sheet(std::span<const Action> all, bool in_browser) {
  std::vector<KeyLine> lines;
  std::vector<KeyPress> keys;  // of the last line
  std::string menu;            // of the last row that has one
  for (const Action& action : all) {
    const std::vector<KeyPress> own = usable_keys(action, in_browser);
    if (own.empty() && action.key_text.empty()) continue;
    const std::string words = action.sheet_text.empty() ? without_dots(action.title) : action.sheet_text;
    if (!action.menu.empty()) menu = action.menu.substr(0, action.menu.find('/'));
    if (lines.empty() || lines.back().words != words) {
      lines.push_back(
          {action.key_text, words, action.menu.empty() && !action.section.empty() ? action.section : menu});
      keys.clear();
    }
    keys.insert(keys.end(), own.begin(), own.end());
    if (action.key_text.empty()) lines.back().keys = key_text(keys);
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

struct RankedAction {
  FoundAction found;
  int score = 0;
  bool enabled = true;
};

std::optional<RankedAction> rank_action(const Action& action, std::string_view query) {
  const std::string submenus = path_words(action.menu, 1, ": ");
  FoundAction found{&action,
                    submenus.empty() ? action.title : submenus + ": " + action.title,
                    path_words(action.menu, 0, " › "),
                    {}};
  auto match = fuzzy_match(query, found.name);
  if (match)
    match->score += name_bonus * static_cast<int>(match->highlighted.size());
  else
    match = fuzzy_match(query, found.name + "\n" + found.subtitle);
  if (!match) return std::nullopt;
  std::erase_if(match->highlighted, [&](std::size_t at) { return at >= found.name.size(); });
  found.highlighted = std::move(match->highlighted);
  return RankedAction{std::move(found), match->score};
}

}  // namespace

std::vector<FoundAction> search_actions(std::span<const Action> all, std::string_view query,
                                        const std::function<bool(const Action&)>& is_enabled) {
  std::vector<RankedAction> list;
  for (const Action& action : all) {
    if (!action.command) continue;
    if (auto row = rank_action(action, query)) {
      row->enabled = query.empty() || !is_enabled || is_enabled(action);
      list.push_back(std::move(*row));
    }
  }
  std::stable_sort(list.begin(), list.end(), [](const RankedAction& a, const RankedAction& b) {
    return std::pair(a.score, a.enabled) > std::pair(b.score, b.enabled);
  });
  std::vector<FoundAction> found;
  for (RankedAction& row : list) found.push_back(std::move(row.found));
  return found;
}

namespace {

using core::text::lower;

constexpr int letter_score = 1, word_start_score = 8, text_start_score = 2;
constexpr int adjacent_score = 4, adjacent_from_word_start_score = 12;
constexpr int no_match = -1;

/// Whether a byte belongs to a word: ASCII letters and digits, and bytes of non-ASCII characters.
bool is_in_word(char c) {
  const char l = lower(c);
  return (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80;
}

bool starts_word(std::string_view text, std::size_t at) {
  return is_in_word(text[at]) && (at == 0 || !is_in_word(text[at - 1]));
}

/// Best match of the first letters of a query word that ends at one byte of the text.
struct PartialMatch {
  int score = no_match;
  int run = 0;           ///< score of the next letter if it is adjacent
  std::size_t from = 0;  ///< position of the letter before
};

int position_score(std::string_view text, std::size_t at) {
  return letter_score + (starts_word(text, at) ? word_start_score : 0) + (at == 0 ? text_start_score : 0);
}

/// Returns the endings with one more letter; before is nullptr for the first letter of a word.
std::vector<PartialMatch> extend_matches(const std::vector<PartialMatch>* before, char wanted,
                                         std::string_view text) {
  std::vector<PartialMatch> matches(text.size());
  std::size_t best = 0;  // of those that end further left
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (before && at > 1 && (*before)[at - 2].score > (*before)[best].score) best = at - 2;
    if (lower(text[at]) != wanted) continue;
    const int next = starts_word(text, at) ? adjacent_from_word_start_score : adjacent_score;
    const int keys_apply = position_score(text, at);
    if (!before) {
      matches[at] = {keys_apply, next, 0};
      continue;
    }
    if (at > 1 && (*before)[best].score != no_match)
      matches[at] = {(*before)[best].score + keys_apply, next, best};
    if (at == 0 || (*before)[at - 1].score == no_match) continue;
    const PartialMatch& left = (*before)[at - 1];
    const int run = std::max(left.run, next == adjacent_from_word_start_score ? next : 0);
    if (left.score + letter_score + run >= matches[at].score)
      matches[at] = {left.score + letter_score + run, run, at - 1};
  }
  return matches;
}

/// Adds one word of the query to a match; returns false when the text does not contain it.
bool add_word(std::string_view word, std::string_view text, FuzzyMatch& match) {
  std::vector<std::vector<PartialMatch>> steps;
  for (const char c : word)
    steps.push_back(extend_matches(steps.empty() ? nullptr : &steps.back(), lower(c), text));
  const auto& last = steps.back();
  const auto best =
      std::max_element(last.begin(), last.end(),
                       [](const PartialMatch& a, const PartialMatch& b) { return a.score < b.score; });
  if (best == last.end() || best->score == no_match) return false;
  match.score += best->score;
  auto at = static_cast<std::size_t>(best - last.begin());
  for (std::size_t k = steps.size(); k-- > 0;) {
    match.highlighted.push_back(at);
    at = steps[k][at].from;
  }
  return true;
}

}  // namespace

std::optional<FuzzyMatch> fuzzy_match(std::string_view query, std::string_view text) {
  FuzzyMatch match;
  for (const std::string_view word : core::text::split_words(query))
    if (!add_word(word, text, match)) return std::nullopt;
  std::sort(match.highlighted.begin(), match.highlighted.end());
  match.highlighted.erase(std::unique(match.highlighted.begin(), match.highlighted.end()),
                          match.highlighted.end());
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

struct KeyName {
  Key key;
  const char* name;
};
constexpr std::array key_names{KeyName{Key::escape, "Esc"},
                               KeyName{Key::enter, "Enter"},
                               KeyName{Key::tab, "Tab"},
                               KeyName{Key::delete_, "Delete"},
                               KeyName{Key::backspace, "Backspace"},
                               KeyName{Key::left, "←"},
                               KeyName{Key::right, "→"},
                               KeyName{Key::up, "↑"},
                               KeyName{Key::down, "↓"},
                               KeyName{Key::home, "Home"},
                               KeyName{Key::end, "End"},
                               KeyName{Key::page_up, "Page up"},
                               KeyName{Key::page_down, "Page down"},
                               KeyName{Key::bracket_left, "["},
                               KeyName{Key::bracket_right, "]"},
                               KeyName{Key::question, "?"},
                               KeyName{Key::slash, "/"},
                               KeyName{Key::space, "Space"},
                               KeyName{Key::plus, "+"},
                               KeyName{Key::minus, "−"}};

std::string name(Key key) {
  if (key >= Key::a && key <= Key::z) return nth_letter('A', Key::a, key);
  if (key >= Key::digit_0 && key <= Key::digit_9) return nth_letter('0', Key::digit_0, key);
  if (key >= Key::f1 && key <= Key::f12)
    return "F" + std::to_string(1 + static_cast<int>(key) - static_cast<int>(Key::f1));
  const auto known = std::ranges::find(key_names, key, &KeyName::key);
  return known == key_names.end() ? "" : known->name;
}

bool are_digits_in_a_row(std::span<const KeyPress> presses) {
  if (presses.size() < 3 || presses.front().key < Key::digit_0 || presses.back().key > Key::digit_9)
    return false;
  for (std::size_t k = 1; k < presses.size(); ++k)
    if (static_cast<int>(presses[k].key) != static_cast<int>(presses[k - 1].key) + 1) return false;
  return true;
}

}  // namespace

std::string key_text(const KeyPress& press) {
  return modifiers(press) + name(press.key);
}

std::string key_text(std::span<const KeyPress> presses) {
  if (presses.empty()) return "";
  const std::string held = modifiers(presses.front());
  const auto each = [&](auto holds) { return std::all_of(presses.begin(), presses.end(), holds); };
  const bool same = each([&](const KeyPress& p) { return modifiers(p) == held; });
  if (same && are_digits_in_a_row(presses))
    return held + name(presses.front().key) + " … " + name(presses.back().key);
  const bool letters =
      same && each([](const KeyPress& p) { return core::text::character_count(name(p.key)) == 1; });
  std::string text = key_text(presses.front());
  for (const KeyPress& press : presses.subspan(1))
    text += letters ? " " + name(press.key) : ", " + key_text(press);
  return text;
}

void handle_key(const KeyPress& press, const ActionContext& context, Commands& commands) {
  const Forms& forms = context.forms;
  // Quitting loses nothing: recoverable work stays for the next run.
  const bool may_quit = forms.dialog == Dialog::recovery;
  if (forms.dialog != Dialog::none && !may_quit) return;
  if (forms.typed && forms.typed->needs_focus && !press.ctrl) return;  // it belongs to the field
  // The start page hides what a letter or a digit would change.
  const bool is_character = core::text::character_count(name(press.key)) == 1;
  if (forms.start_page && !context.pending.selection.lesson && !press.ctrl && is_character) return;
  const std::vector<Action> all = actions(context);
  if (const Action* action = action_for_key(all, press, context.pending);
      action && (!may_quit || action->id == "file/quit"))
    perform(*action, context, commands);
}

}  // namespace app
