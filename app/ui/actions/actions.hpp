#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/session/command.hpp"
#include "app/session/document.hpp"
#include "app/session/key_press.hpp"

namespace app {

/// Something that people can ask for. Menus, keys, the key sheet and the palette are drawn from these rows.
struct Action {
  std::string id;          ///< "file/save"; no other has it
  std::string title;       ///< as in a menu: "Save"
  std::string menu = {};   ///< the menu it stands in: "File", "View/Scale"; "" in none
  int group = 0;           ///< within the menu of the menu bar, where lines part groups
  int part = 0;            ///< the same within a submenu
  std::string about = {};  ///< a sentence for its tooltip, or ""
  std::vector<KeyPress> keys = {};
  /// Where its keys mean it; no two actions have the same key in the same place.
  bool (*here)(const Pending&) = [](const Pending&) { return true; };
  /// Its words in the key sheet; "" for the title. Rows in a row with the same words are one line.
  std::string sheet = {};
  std::string written = {};  ///< its keys in the sheet, where no KeyPress says them
  /// "" when it can be done, else why not; empty: always.
  std::function<std::string(const Situation&)> why_not = {};
  /// What it asks for; empty for what the matrix editor or a view do by themselves. To be called when it can
  /// be done.
  std::function<std::vector<Command>(const Situation&)> command = {};
  /// Whether what it switches is on; empty: it switches nothing.
  std::function<bool(const Situation&)> checked = {};
};

/// The actions of one menu of the menu bar, and the keys that belong to it.
struct Subject {
  const char* menu;  ///< "File"
  std::vector<Action> (*actions)(const Situation&);
};

std::span<const Subject> subjects();

/// All actions, in the order of the menus.
std::vector<Action> actions(const Situation& situation);

/// The action of that name, or nullptr.
const Action* find_action(std::span<const Action> all, std::string_view id);

/// "" when it can be done, else why not.
std::string why_not(const Action& action, const Situation& situation);

/// Asks for what it does, if it can be done.
void perform(const Action& action, const Situation& situation, Commands& commands);

/// The same of the action of that name.
void perform(std::string_view id, const Situation& situation, Commands& commands);

/// Its first key as a menu shows it, or "" where a view has no key for it.
std::string key_words(const Action& action, const Pending& newest);

/// One line of the key sheet.
struct KeyLine {
  std::string keys, words;
  std::string menu;  ///< the menu of the menu bar that its action stands in, or that it is listed with
};

std::vector<KeyLine> key_sheet(std::span<const Action> all);

/// How well a text has what is looked for, and where.
struct FuzzyMatch {
  int score = 0;                 ///< the larger, the better
  std::vector<std::size_t> lit;  ///< the bytes of the text that were matched, ascending
};

/// Looks for the letters of each word of a query in a text, in their order but not side by side; nothing when
/// one is missing.
///
/// Words of the query are parted by blanks and may stand anywhere. Letters that follow the start of a
/// word of the text at once count most, then starts of words, then letters side by side; capitals are like
/// small letters (of ASCII). An empty query is found in every text, with 0.
std::optional<FuzzyMatch> fuzzy_match(std::string_view query, std::string_view text);

/// An action that the palette lists.
struct FoundAction {
  const Action* action = nullptr;
  std::string name;   ///< "Scale: 150 %": its title, behind the submenus that it needs to be understood
  std::string place;  ///< "View › Scale"
  std::vector<std::size_t> lit;  ///< the bytes of the name that were matched
};

/// The actions that have a command and what is looked for, in their name or else in the names of their menus;
/// the best first, of equally good ones those that are possible now, then in the order of the table.
std::vector<FoundAction> found_actions(std::span<const Action> all, std::string_view query,
                                       const std::function<bool(const Action&)>& is_possible = {});

/// A key as people write it: "Ctrl+Shift+S", "F1", "+".
std::string written(const KeyPress& press);

/// Several keys as one: "Ctrl+Y, Ctrl+Shift+Z", "1 … 9" for digits in a row, "Shift+↑ ↓" where all are held
/// with the same.
std::string written(std::span<const KeyPress> presses);

/// Turns a key into what the table of actions says that it asks for.
///
/// Nothing happens while a dialog is open; call it only when no text is being typed (io.WantTextInput).
void handle_key(const KeyPress& press, const Situation& situation, Commands& commands);

}  // namespace app
