#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/model.hpp"

namespace core::text {

/// A typed sentence may have so many tokens; longer text is refused before it is taken apart.
constexpr std::size_t max_sentence_tokens = 512, max_sentence_bytes = 65536;

/// What a sentence is taken apart into.
enum class TokenRule { words, characters };

/// The words of a text, punctuation marks as words of their own; an apostrophe, hyphen, point or comma inside
/// a word belongs to it ("I'm", "3.5").
///
/// 1 … max_sentence_tokens words. Throws core::Error for text without a word, with more, longer than
/// max_sentence_bytes or not in UTF-8.
std::vector<std::string> words(std::string_view text);

/// The characters of a text, one for each code point; white space is shown by a sign (␣, ⇥, ↵).
///
/// The same limits and errors as words().
std::vector<std::string> characters(std::string_view text);

/// words() or characters().
std::vector<std::string> tokens(std::string_view text, TokenRule rule);

/// The distinct tokens in the order in which they first appear.
std::vector<std::string> vocabulary(const std::vector<std::string>& tokens);

/// The model with one sequence of these tokens in place of its own; equal tokens get equal embeddings.
///
/// The embeddings are the rows of nn.Embedding(number of distinct tokens, d_model) as PyTorch draws it right
/// after manual_seed(seed). All else stays, but mask cells beyond the sentence and a given dropout mask go.
/// Throws core::Error when the sentence is longer than the model's context_length or than attend() can
/// compute.
attention::Model with_sentence(const attention::Model& base, const std::vector<std::string>& tokens,
                               std::uint64_t seed);

}  // namespace core::text
