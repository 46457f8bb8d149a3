#include "app/ui/actions/action_finding.hpp"

#include <algorithm>
#include <utility>

namespace app {
namespace {

constexpr int name_bonus = 3;  // for each letter that is found without a look at the menus

/// A path of menus with something else between them, from a level on.
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

}  // namespace app
