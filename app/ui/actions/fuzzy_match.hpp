#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

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

}  // namespace app
