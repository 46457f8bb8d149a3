#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/model/aligned_text.hpp"
#include "core/model/regex.hpp"

namespace core::tokenizers {

/// What becomes of the places where a text is cut. Source: the library tokenizers, SplitDelimiterBehavior.
enum class Delimiters { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// Cuts at what a pattern matches, or, inverted, at what it does not.
struct CutAt {
  Regex pattern;
  Delimiters delimiters = Delimiters::isolated;
  bool inverted = false;
};
/// Writes bytes as the characters that stand for them.
struct ToBytes {
  bool adds_blank = false;  ///< in front of every part that does not begin with one
};
/// Writes blanks as a character, which may be put in front as well.
struct ToMetaspace {
  std::string character;
  enum class InFront { never, first, always } in_front = InFront::always;
  bool cuts = true;  ///< before every such character
};
/// Cuts at blanks, and makes a word of every sign.
struct CutForBert {};

/// A step that cuts a text into words that become tokens each on its own.
using PreTokenizer = std::variant<CutAt, ToBytes, ToMetaspace, CutForBert>;

/// The words of a text after all steps, in their order; without any the text is one word.
std::vector<AlignedText> words_of(const std::vector<PreTokenizer>& steps, AlignedText text);

/// GPT-2's pattern: contractions, letters, numbers, signs, blanks.
extern const char* const gpt2_pattern;

}  // namespace core::tokenizers
