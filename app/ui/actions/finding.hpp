#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/ui/actions/actions.hpp"

namespace app {

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

}  // namespace app
