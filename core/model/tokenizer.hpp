#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "core/model/text_steps.hpp"

/// Text to tokens and back.
namespace core::tokenizers {

/// Pieces and their IDs.
class Vocabulary {
 public:
  /// Assigns an ID to a piece; the piece that had it before keeps it as well.
  void put(std::string piece, std::size_t id);
  /// Returns one more than the largest ID.
  std::size_t size() const { return pieces_.size(); }
  std::optional<std::size_t> find(std::string_view piece) const;
  /// Returns "" for an unknown ID.
  const std::string& piece(std::size_t id) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> ids_;
  std::vector<std::string> pieces_;
};

/// Byte pair encoding: neighbors are merged in the order of the merges. Source: Sennrich, Haddow and Birch
/// 2016.
struct BytePairEncoding {
  struct Rank {
    std::uint32_t rank, id;
  };
  std::unordered_map<std::uint64_t, Rank> merges;  ///< by left << 32 | right
  std::optional<std::size_t> unknown;
  bool byte_fallback = false;   ///< unknown characters become "<0x..>"
  bool fuses_unknown = false;   ///< several in a row become one
  bool ignores_merges = false;  ///< a word in the vocabulary becomes one token without merges
};

/// sentencepiece's BPE: merges neighbors that form a piece, the largest score first. Source: Kudo and
/// Richardson 2018.
struct SentencePieceBpe {
  std::vector<float> scores;  ///< [id]
  std::optional<std::size_t> unknown;
};

/// WordPiece: takes the longest piece that a word begins with, repeatedly. Source: Wu et al. 2016.
struct WordPiece {
  std::size_t unknown = 0;
  std::string continuation = "##";    ///< before a piece that does not begin a word
  std::size_t max_word_length = 100;  ///< in characters; longer words are unknown
};

using WordModel = std::variant<BytePairEncoding, SentencePieceBpe, WordPiece>;

/// How the pieces of a vocabulary spell text.
enum class Spelling { plain, bytes, metaspace, word_pieces };

/// Everything that defines a tokenizer.
struct TokenizerDefinition {
  Vocabulary vocabulary;
  std::vector<AddedToken> added;
  std::vector<Normalizer> normalizers;
  std::vector<PreTokenizer> pre_tokenizers;
  WordModel model;
  std::vector<std::size_t> leading, trailing;  ///< tokens around every text
  Spelling spelling = Spelling::plain;
  bool strips_first_space = false;  ///< when decoding, as encoding inserted it
};

/// A token of a text.
struct TextToken {
  std::size_t id = 0;
  std::string text;          ///< its part of the source; all parts joined are the source
  bool is_special = false;   ///< not part of the language
  bool is_inserted = false;  ///< inserted by the tokenizer, without a part of the source
  friend bool operator==(const TextToken&, const TextToken&) = default;
};

std::vector<std::size_t> ids_of(std::span<const TextToken> tokens);

/// The tokenizer that a model was trained with, from text to tokens and back. Copying copies the vocabulary.
class Tokenizer {
 public:
  explicit Tokenizer(TokenizerDefinition definition);

  /// Returns the tokens of a text, with those that the model adds around it.
  ///
  /// A character that is split into several tokens belongs to the text of the last of them. Throws
  /// core::Error when the text is not UTF-8.
  std::vector<TextToken> encode(std::string_view text) const;

  /// Returns the characters of a text that become no token, each once: of byte pair encoding with neither a
  /// token for unknown characters nor bytes.
  std::vector<std::string> characters_without_token(std::string_view text) const;

  /// Returns the text of tokens, without special ones; bytes that are not UTF-8 stay.
  std::string decode(std::span<const std::size_t> ids) const;

  /// Returns a piece as in the vocabulary; "" for an unknown ID.
  const std::string& piece(std::size_t id) const { return definition_.vocabulary.piece(id); }
  /// Returns the text of a token as bytes; for WordPiece the piece itself.
  std::string bytes(std::size_t id) const;
  bool is_special(std::size_t id) const;
  std::optional<std::size_t> find(std::string_view piece) const { return definition_.vocabulary.find(piece); }
  /// Returns one more than the largest ID.
  std::size_t size() const { return definition_.vocabulary.size(); }

 private:
  void encode_words(AlignedText text, std::vector<std::pair<std::size_t, std::size_t>>& tokens) const;

  TokenizerDefinition definition_;
  std::vector<AddedToken> raw_, normalized_;  // added tokens, by is_normalized
  std::vector<bool> is_added_, is_special_;   // [id]
};

/// Adds a merge, replacing an earlier one of the same pair; lower ranks are merged first.
///
/// Throws core::Error, "PLACEexpected …", when a part is empty, so that merging would not end, or a part or
/// the merged piece is not in the vocabulary.
void add_merge(BytePairEncoding& model, const Vocabulary& vocabulary, std::string_view left,
               std::string_view right, std::size_t rank, const std::string& place);

}  // namespace core::tokenizers
