#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/ui/actions/actions.hpp"
#include "app/ui/actions/fuzzy_match.hpp"

namespace app {

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
