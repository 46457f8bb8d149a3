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

/// Action of the user. Menus, keys, the key sheet and the palette are built from these rows.
struct Action {
  std::string id;            ///< "file/save"; unique
  std::string title;         ///< as in a menu: "Save"
  std::string menu = {};     ///< path of its menu: "File", "View/Scale"; "" in none
  int group = 0;             ///< within the menu of the menu bar; lines separate groups
  int part = 0;              ///< the same within a submenu
  std::string about = {};    ///< its tooltip, one sentence, or ""
  bool shows_about = false;  ///< below its title instead of in a tooltip
  std::string section =
      {};  ///< heading in its menu of the lines with the same one, or ""; without a menu, in the key sheet
  std::string remark = {};  ///< at the right of its line in a menu, where it has no key: "15 min"
  std::vector<KeyPress> keys = {};
  /// Whether its keys apply in a view; no two actions have the same key in the same view.
  bool (*keys_apply)(const Pending&) = [](const Pending&) { return true; };
  /// Its description in the key sheet; "" for the title. Successive rows with the same one form one line.
  std::string sheet_text = {};
  std::string key_text = {};  ///< its keys in the sheet, if not the names of `keys`
  /// Returns "" when it can be done, else why not; empty: it can always be done.
  std::function<std::string(const ActionContext&)> disabled_reason = {};
  /// Returns its commands; empty if the matrix editor or a view handles it itself. Call it only when it can
  /// be done.
  std::function<std::vector<Command>(const ActionContext&)> command = {};
  /// Whether the option that it switches is on; empty: it switches nothing.
  std::function<bool(const ActionContext&)> checked = {};
};

/// Menu of the menu bar with its actions, and the keys listed with it.
struct TopLevelMenu {
  const char* menu;  ///< "File"
  std::vector<Action> (*actions)(const ActionContext&);
};

std::span<const TopLevelMenu> top_level_menus();

/// Returns all actions, in the order of the menus.
std::vector<Action> actions(const ActionContext& context);

/// Returns the action with that ID, or nullptr.
const Action* find_action(std::span<const Action> all, std::string_view id);

/// Returns "" when the action can be done, else why not.
std::string disabled_reason(const Action& action, const ActionContext& context);

/// Adds the commands of an action, if it can be done.
void perform(const Action& action, const ActionContext& context, Commands& commands);

/// Performs the action with that ID.
void perform(std::string_view id, const ActionContext& context, Commands& commands);

/// Returns whether browsers keep a key for themselves: an action with one has a second key.
bool is_reserved_in_browsers(const KeyPress& press);

/// Returns the first key of an action as a menu shows it, or "" if none applies in the view.
std::string shortcut_text(const Action& action, const Pending& newest, bool in_browser = false);

/// One line of the key sheet.
struct KeyLine {
  std::string keys, words;
  std::string menu;  ///< the menu of the menu bar that contains its action, or that it is listed with
};

std::vector<KeyLine> key_sheet(std::span<const Action> all, bool in_browser = false);

/// Score of a query in a text, and where it matched.
struct FuzzyMatch {
  int score = 0;                         ///< the larger, the better
  std::vector<std::size_t> highlighted;  ///< the bytes of the text that were matched, ascending
};

/// Finds the letters of each word of a query in a text, in order but not necessarily adjacent; nothing when
/// one is missing.
///
/// Words of the query are separated by spaces and match in any order. Letters directly after the start of a
/// word of the text count most, then starts of words, then other adjacent letters; ASCII case is ignored. An
/// empty query matches every text with a score of 0.
std::optional<FuzzyMatch> fuzzy_match(std::string_view query, std::string_view text);

/// Action listed in the palette.
struct FoundAction {
  const Action* action = nullptr;
  std::string name;                      ///< "Scale: 150 %": its title, after its submenus
  std::string subtitle;                  ///< "View › Scale"
  std::vector<std::size_t> highlighted;  ///< the bytes of the name that were matched
};

/// Returns the actions with a command that match a query, in their name or else also in their menus: by
/// score, then possible ones first, then in the order of the table.
std::vector<FoundAction> search_actions(std::span<const Action> all, std::string_view query,
                                        const std::function<bool(const Action&)>& is_enabled = {});

/// Returns a key as text: "Ctrl+Shift+S", "F1", "+".
std::string key_text(const KeyPress& press);

/// Returns several keys as one text: "Ctrl+Y, Ctrl+Shift+Z", "1 … 9" for successive digits, "Shift+↑ ↓" for
/// keys with the same modifiers.
std::string key_text(std::span<const KeyPress> presses);

/// Adds the commands that the table of actions assigns to a key.
///
/// Does nothing in a dialog, except quit in recovery; call it only while no text is typed (io.WantTextInput).
void handle_key(const KeyPress& press, const ActionContext& context, Commands& commands);

}  // namespace app
