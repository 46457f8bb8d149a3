#pragma once

#include <span>
#include <string_view>

namespace core::lessons {

/// A word of the field and what it means, in one or two sentences.
struct Term {
  const char* word;
  const char* meaning;
};

/// All terms, in the order in which one meets them.
std::span<const Term> glossary();

/// The term of that word, or nullptr; capitals of ASCII count as small letters.
const Term* find_term(std::string_view word);

}  // namespace core::lessons
