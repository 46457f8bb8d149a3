#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace core::formats {
class Json;
class GgufMetadata;
}  // namespace core::formats

/// Text to tokens and back. A text is split into words by the steps that tokenizer.json names: normalizers,
/// then pre-tokenizers.
namespace core::tokenizers {

/// A text on its way to tokens, with the part of the source that each of its bytes represents.
struct AlignedText {
  std::string text;
  std::vector<std::size_t> ends;  ///< [byte]: end of the part of the source that the byte represents
  std::size_t begin = 0;          ///< bytes of the source before this text

  bool empty() const { return text.empty(); }
  /// Appends bytes that all represent the source up to `end`.
  ///
  /// Throws core::Error when the text becomes longer than normal tokenizers make it: a few steps that each
  /// double it would fill the memory.
  void append(std::string_view bytes, std::size_t end);
  /// Returns a part of it, by bytes.
  AlignedText part(std::size_t from, std::size_t count) const;
};

/// Returns a part of a source that begins at byte `begin` of it, unchanged.
AlignedText align_text(std::string_view text, std::size_t begin);

/// Bytes begin … end − 1 of a text.
struct ByteSpan {
  std::size_t begin = 0, end = 0;
};

/// The regular expression engine that defines \w, \s and \b of a pattern: that of patterns in files, or that
/// of the patterns built into the library tokenizers.
enum class Dialect { oniguruma, rust };

/// A regular expression of UTF-8 text with Unicode properties. Copies share the compiled pattern; safe
/// between threads.
class Regex {
 public:
  /// Throws core::Error, "PLACEexpected …", when it cannot be compiled.
  Regex(const std::string& pattern, const std::string& place, Dialect dialect = Dialect::oniguruma);

  /// Returns all non-empty matches from left to right. Throws core::Error when matching takes too long.
  std::vector<ByteSpan> matches(std::string_view text) const;

 private:
  std::shared_ptr<const void> code_;
};

/// Returns a pattern that matches the text and nothing else.
std::string escaped_pattern(std::string_view text);

/// Returns the character that represents each byte in byte-level vocabularies, in UTF-8. Source: Radford et
/// al. 2019, bytes_to_unicode().
const std::array<std::string, 256>& bytes_to_unicode();
/// Returns the bytes that the characters of a piece represent; other characters stay as they are.
std::string bytes_of_piece(std::string_view piece);
/// Returns the byte of a piece like "<0x0A>", or nothing.
std::optional<std::uint8_t> byte_of_fallback(std::string_view piece);
/// Returns a piece like "<0x0A>".
std::string fallback_piece(std::uint8_t byte);

/// Unicode's four normal forms. Source: Unicode Standard Annex 15.
enum class NormalForm { nfc, nfd, nfkc, nfkd };

struct UnicodeNormalize {
  NormalForm form;
};
struct Lowercase {};
struct StripAccents {};  ///< marks of any kind
/// BERT's normalizer. Source: the tokenizer of Devlin et al. 2018.
struct BertNormalizer {
  bool clean = true, isolates_chinese = true, strips_accents = true,
       lower = true;  ///< accents: they are stripped
};
struct Prepend {
  std::string text;
};
struct Replace {
  Regex pattern;
  std::string by;
};
struct Strip {
  bool left = true, right = true;
};

/// A step that changes a text before it is split into words.
using Normalizer =
    std::variant<UnicodeNormalize, Lowercase, StripAccents, BertNormalizer, Prepend, Replace, Strip>;

/// Returns the text after all steps, in order.
AlignedText normalize(const std::vector<Normalizer>& steps, AlignedText text);

/// How a split treats the matches. Source: the library tokenizers, SplitDelimiterBehavior.
enum class DelimiterBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// Splits at the matches of a pattern, or, inverted, at the text between them.
struct RegexSplit {
  Regex pattern;
  DelimiterBehavior delimiters = DelimiterBehavior::isolated;
  bool inverted = false;
};
/// Writes bytes as the characters that represent them.
struct ByteLevel {
  bool adds_space = false;  ///< a space, before every part that does not begin with one
};
/// Writes spaces as a character, which may be put in front as well.
struct Metaspace {
  std::string character;
  enum class Leading { never, first, always } leading = Leading::always;
  bool splits = true;  ///< before every such character
};
/// Splits at whitespace and isolates punctuation.
struct BertPreTokenizer {};

/// A step that splits a text into words, each of which is tokenized on its own.
using PreTokenizer = std::variant<RegexSplit, ByteLevel, Metaspace, BertPreTokenizer>;

/// Returns the words of a text after all steps, in order; without steps the text is one word.
std::vector<AlignedText> pre_tokenize(const std::vector<PreTokenizer>& steps, AlignedText text);

/// GPT-2's pattern: contractions, letters, numbers, other symbols, whitespace.
extern const char* const gpt2_pattern;

/// A token that is searched for in a text before everything else.
struct AddedToken {
  std::string text;
  std::size_t id = 0;
  bool is_special = false;     ///< not part of the language
  bool is_normalized = false;  ///< searched for in the normalized text, not in the source
  bool absorbs_left_space = false, absorbs_right_space = false;
  bool is_single_word = false;  ///< matches only as a whole word
};

struct FoundToken {
  ByteSpan span;
  std::size_t id = 0;
};

/// Returns the occurrences of added tokens from left to right; at the same position the longest.
std::vector<FoundToken> find_added(const std::vector<AddedToken>& tokens, std::string_view text);

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

/// Opens the tokenizer in a folder: tokenizer.json, or else vocab.json with merges.txt, or BERT's vocab.txt,
/// for which tokenizer_config.json says whether to lower-case.
///
/// Throws core::Error when there is none of them or one is damaged.
Tokenizer open_tokenizer(const std::filesystem::path& folder);
/// Returns whether a folder has a file that open_tokenizer() would read.
bool has_tokenizer(const std::filesystem::path& folder);

/// Reads a tokenizer.json of the library tokenizers.
///
/// Throws core::Error, "FILE: PLACE: …", when it is damaged, or has a model other than BPE and WordPiece or
/// an unsupported step.
TokenizerDefinition definition_from_json(const formats::Json& top);

/// Reads the tokenizer in the metadata of a GGUF file: gpt2 (byte pairs), llama (scored pairs) or bert.
///
/// Throws core::Error, "FILE: KEY: …", when it is damaged, of another kind, or splits words in an unsupported
/// way.
TokenizerDefinition definition_from_gguf(const formats::GgufMetadata& metadata);

}  // namespace core::tokenizers
