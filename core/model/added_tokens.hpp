#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/regex.hpp"

namespace core::tokenizers {

/// A token that is found in a text before anything else is.
struct AddedToken {
  std::string text;
  std::size_t id = 0;
  bool is_special = false;     ///< of the model, not of its language
  bool is_normalised = false;  ///< found in the text after it was normalised, not before
  bool takes_blanks_left = false, takes_blanks_right = false;
  bool is_single_word = false;  ///< not inside of a word
};

/// Where such a token is.
struct FoundToken {
  Span span;
  std::size_t id = 0;
};

/// Those that occur, from left to right; of those that begin at one place the longest.
std::vector<FoundToken> find_added(const std::vector<AddedToken>& tokens, std::string_view text);

}  // namespace core::tokenizers
