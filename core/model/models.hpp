#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/model/vocabulary.hpp"

namespace core::tokenizers {

/// Byte pair encoding: neighbours are merged in the order in which they were learnt. Source: Sennrich,
/// Haddow and Birch 2016.
struct BytePairs {
  struct Rank {
    std::uint32_t rank, id;
  };
  std::unordered_map<std::uint64_t, Rank> merges;  ///< of left << 32 | right
  std::optional<std::size_t> unknown;
  bool falls_back_to_bytes = false;  ///< what is not known becomes "<0x..>"
  bool joins_unknown = false;        ///< several in a row become one
  bool takes_whole_words = false;    ///< a word of the vocabulary is never made of parts
};

/// Pairs as sentencepiece merges them: whatever two neighbours make a piece, the one of the largest score
/// first. Source: Kudo and Richardson 2018.
struct ScoredPairs {
  std::vector<float> scores;  ///< [id]
  std::optional<std::size_t> unknown;
};

/// The longest piece that a word begins with, again and again. Source: Wu et al. 2016.
struct WordPieces {
  std::size_t unknown = 0;
  std::string continues = "##";    ///< in front of a piece that does not begin a word
  std::size_t longest_word = 100;  ///< characters; longer ones are unknown
};

/// What makes tokens of a word.
using WordModel = std::variant<BytePairs, ScoredPairs, WordPieces>;

std::vector<Piece> pieces_of(const BytePairs& model, const Vocabulary& vocabulary, std::string_view word);
std::vector<Piece> pieces_of(const ScoredPairs& model, const Vocabulary& vocabulary, std::string_view word);
std::vector<Piece> pieces_of(const WordPieces& model, const Vocabulary& vocabulary, std::string_view word);

/// Adds the rule that two pieces become one, of which the soonest counts.
///
/// Throws core::Error, "PLACEexpected …", when a part is empty, so that merging would not end, or a part or
/// what they make is not in the vocabulary.
void add_merge(BytePairs& model, const Vocabulary& vocabulary, std::string_view left, std::string_view right,
               std::size_t rank, const std::string& place);

}  // namespace core::tokenizers
