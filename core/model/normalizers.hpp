#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/model/aligned_text.hpp"
#include "core/model/regex.hpp"
#include "core/model/unicode.hpp"

namespace core::tokenizers {

struct ToForm {
  NormalForm form;
};
struct ToLower {};
struct StripAccents {};  ///< marks of any kind
/// What BERT does to a text before it is cut. Source: the tokenizer of Devlin et al. 2018.
struct CleanForBert {
  bool clean = true, chinese = true, accents = true, lower = true;  ///< accents are stripped
};
struct Prepend {
  std::string text;
};
struct ReplaceAll {
  Regex pattern;
  std::string by;
};
struct StripBlanks {
  bool left = true, right = true;
};

/// A step that changes a text before it is cut into words.
using Normalizer =
    std::variant<ToForm, ToLower, StripAccents, CleanForBert, Prepend, ReplaceAll, StripBlanks>;

/// The text after all steps, in their order.
AlignedText normalised(const std::vector<Normalizer>& steps, AlignedText text);

}  // namespace core::tokenizers
