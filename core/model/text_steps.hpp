#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// The steps that tokenizer.json names: normalizers, then pre-tokenizers, split a text into words.
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

}  // namespace core::tokenizers
