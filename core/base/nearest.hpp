#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace core::text {

/// How many letters must be put in, taken out or changed to make one word the other (Levenshtein).
std::size_t distance(std::string_view a, std::string_view b);

/// What to add to an error about a word that is none of the known ones: "; did you mean \"scale\"?", or
/// nothing when none is near.
std::string suggestion(std::string_view word, std::initializer_list<std::string_view> known);

}  // namespace core::text
