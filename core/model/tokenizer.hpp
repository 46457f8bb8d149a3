#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <unordered_map>
#include <utility>

#include "core/model/text_steps.hpp"

namespace core::formats {
class Json;
class GgufMetadata;
}  // namespace core::formats

namespace core::tokenizers {

/// Pieces and their ids.
class Vocabulary {
 public:
  /// Gives an id to a piece; the piece that had it before keeps it as well.
  void put(std::string piece, std::size_t id);
  /// One more than the largest id.
  std::size_t size() const { return pieces_.size(); }
  std::optional<std::size_t> find(std::string_view piece) const;
  /// "" where there is none.
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
struct BytePairs {
  struct Rank {
    std::uint32_t rank, id;
  };
  std::unordered_map<std::uint64_t, Rank> merges;  ///< of left << 32 | right
  std::optional<std::size_t> unknown;
  bool falls_back_to_bytes = false;  ///< unknown characters become "<0x..>"
  bool joins_unknown = false;        ///< several in a row become one
  bool takes_whole_words = false;    ///< a word of the vocabulary is never made of parts
};

/// sentencepiece's BPE: any two neighbors that form a piece are merged, the largest score first. Source: Kudo
/// and Richardson 2018.
struct ScoredPairs {
  std::vector<float> scores;  ///< [id]
  std::optional<std::size_t> unknown;
};

/// The longest piece that a word begins with, again and again. Source: Wu et al. 2016.
struct WordPieces {
  std::size_t unknown = 0;
  std::string continues = "##";    ///< before a piece that does not begin a word
  std::size_t longest_word = 100;  ///< characters; longer ones are unknown
};

using WordModel = std::variant<BytePairs, ScoredPairs, WordPieces>;

/// The way in which pieces of a vocabulary spell text.
enum class Spelling { plain, bytes, metaspace, word_pieces };

/// Everything that defines a tokenizer.
struct Recipe {
  Vocabulary vocabulary;
  std::vector<AddedToken> added;
  std::vector<Normalizer> normalizers;
  std::vector<PreTokenizer> pre_tokenizers;
  WordModel model;
  std::vector<std::size_t> in_front, behind;  ///< tokens around every text
  Spelling spelling = Spelling::plain;
  bool strips_first_blank = false;  ///< when decoding, as encoding put one in front
};

/// A token of a text.
struct TextToken {
  std::size_t id = 0;
  std::string text;         ///< its part of the source; all parts together are the source
  bool is_special = false;  ///< not part of the language
  bool is_put_in = false;   ///< has no part of the source
  friend bool operator==(const TextToken&, const TextToken&) = default;
};

/// Text to tokens and back, as the model was trained with. Copying copies the vocabulary.
class Tokenizer {
 public:
  explicit Tokenizer(Recipe recipe);

  /// The tokens of a text, with those that the model wants around it.
  ///
  /// A character that is split into several tokens belongs to the text of the last of them. Throws
  /// core::Error when the text is not UTF-8.
  std::vector<TextToken> encode(std::string_view text) const;

  /// The text of tokens, without special ones; bytes that are not UTF-8 stay.
  std::string decode(std::span<const std::size_t> ids) const;

  /// As it is in the vocabulary; "" beyond it.
  const std::string& piece(std::size_t id) const { return recipe_.vocabulary.piece(id); }
  /// The bytes of text of a token; of WordPiece the piece itself.
  std::string bytes(std::size_t id) const;
  bool is_special(std::size_t id) const;
  std::optional<std::size_t> find(std::string_view piece) const { return recipe_.vocabulary.find(piece); }
  /// One more than the largest id.
  std::size_t size() const { return recipe_.vocabulary.size(); }

 private:
  void encode_words(AlignedText text, std::vector<std::pair<std::size_t, std::size_t>>& tokens) const;

  Recipe recipe_;
  std::vector<AddedToken> raw_, normalized_;  // of the added ones
  std::vector<bool> is_added_, is_special_;   // [id]
};

/// Adds a merge, of which the lowest rank counts.
///
/// Throws core::Error, "PLACEexpected …", when a part is empty, so that merging would not end, or a part or
/// the merged piece is not in the vocabulary.
void add_merge(BytePairs& model, const Vocabulary& vocabulary, std::string_view left, std::string_view right,
               std::size_t rank, const std::string& place);

/// The tokenizer in a folder: tokenizer.json, or else vocab.json with merges.txt, or BERT's vocab.txt, for
/// which tokenizer_config.json says whether to lower-case.
///
/// Throws core::Error when there is none of them or one is damaged.
Tokenizer open_tokenizer(const std::filesystem::path& folder);
/// Whether a folder has a file that open_tokenizer() would read.
bool has_tokenizer(const std::filesystem::path& folder);

/// The content of a tokenizer.json of the library tokenizers.
///
/// Throws core::Error, "FILE: PLACE: …", when it is damaged, or has a model other than BPE and WordPiece or a
/// step that is not supported.
Recipe recipe_of_json(const formats::Json& top);

/// The tokenizer in the metadata of a GGUF file: gpt2 (byte pairs), llama (scored pairs) or bert.
///
/// Throws core::Error, "FILE: KEY: …", when it is damaged, of another kind, or splits words in an unsupported
/// way.
Recipe recipe_of_gguf(const formats::GgufMetadata& metadata);

}  // namespace core::tokenizers
