#include "app/ui/actions/finding.hpp"

#include <algorithm>
#include <utility>

#include "core/base/text.hpp"

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

namespace {

using core::text::lower;

constexpr int letter_score = 1, start_score = 8, front_score = 2;
constexpr int run_score = 4, run_from_start_score = 12;
constexpr int nowhere = -1;

/// Letters and digits; parts of other alphabets' letters too.
bool is_in_word(char c) {
  const char l = lower(c);
  return (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80;
}

bool starts_word(std::string_view text, std::size_t at) {
  return is_in_word(text[at]) && (at == 0 || !is_in_word(text[at - 1]));
}

/// The best way to end the first letters of a word at one place of the text.
struct Ending {
  int score = nowhere;
  int run = 0;           ///< what the next letter counts when it follows at once
  std::size_t from = 0;  ///< where the letter before stands
};

int worth(std::string_view text, std::size_t at) {
  return letter_score + (starts_word(text, at) ? start_score : 0) + (at == 0 ? front_score : 0);
}

/// The endings one letter on; the first letter of a word has none before it.
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

/// Adds one word of the query to a match; false when the text does not have it.
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
  while (!query.empty()) {
    const std::size_t length = std::min(query.find(' '), query.size());
    if (length > 0 && !add_word(query.substr(0, length), text, match)) return std::nullopt;
    query.remove_prefix(std::min(length + 1, query.size()));
  }
  std::sort(match.lit.begin(), match.lit.end());
  match.lit.erase(std::unique(match.lit.begin(), match.lit.end()), match.lit.end());
  return match;
}

}  // namespace app
