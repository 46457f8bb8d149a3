#include "app/ui/actions/fuzzy_match.hpp"

#include <algorithm>

#include "core/base/text.hpp"

namespace app {
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
