#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// The steps by which a text becomes words, as tokenizer.json names them: normalizers, then pre-tokenizers.
namespace core::tokenizers {

/// A text on its way to becoming tokens, which knows the part of the source that each of its bytes
/// represents.
struct AlignedText {
  std::string text;
  std::vector<std::size_t> ends;  ///< [byte]: end of the part of the source that the byte represents
  std::size_t begin = 0;          ///< bytes of the source before this text

  bool empty() const { return text.empty(); }
  /// Appends bytes that all represent the source up to that end.
  ///
  /// Throws core::Error when the text becomes longer than any normal tokenizer makes it: a few steps, each of
  /// which doubles it, would fill the memory.
  void append(std::string_view bytes, std::size_t end);
  /// A part of it, by bytes.
  AlignedText part(std::size_t from, std::size_t count) const;
};

/// A part of a source that begins at that byte of it, unchanged.
AlignedText aligned(std::string_view text, std::size_t begin);

/// Bytes begin … end − 1 of a text.
struct Span {
  std::size_t begin = 0, end = 0;
};

/// The regular expression engine whose \w, \s and \b a pattern means: that of patterns in files, or that of
/// the patterns which the library tokenizers has built in.
enum class Dialect { oniguruma, rust };

/// A regular expression of UTF-8 text with Unicode properties. Copies share the compiled pattern; safe
/// between threads.
class Regex {
 public:
  /// Throws core::Error, "PLACEexpected …", when it cannot be compiled.
  Regex(const std::string& pattern, const std::string& place, Dialect dialect = Dialect::oniguruma);

  /// All matches from left to right, without empty ones. Throws core::Error when matching takes too long.
  std::vector<Span> matches(std::string_view text) const;

 private:
  std::shared_ptr<const void> code_;
};

/// A pattern that matches the text and nothing else.
std::string escaped_pattern(std::string_view text);

/// The character that represents each byte in byte-level vocabularies, in UTF-8. Source: Radford et al. 2019,
/// bytes_to_unicode().
const std::array<std::string, 256>& characters_of_bytes();
/// The bytes that the characters of a piece represent; other characters stay as they are.
std::string bytes_of_piece(std::string_view piece);
/// The byte of a piece like "<0x0A>", or nothing.
std::optional<std::uint8_t> byte_of_fallback(std::string_view piece);
/// "<0x0A>"
std::string fallback_piece(std::uint8_t byte);

/// Unicode's four normal forms. Source: Unicode Standard Annex 15.
enum class NormalForm { nfc, nfd, nfkc, nfkd };

struct ToForm {
  NormalForm form;
};
struct ToLower {};
struct StripAccents {};  ///< marks of any kind
/// BERT's normalizer. Source: the tokenizer of Devlin et al. 2018.
struct CleanForBert {
  bool clean = true, chinese = true, accents = true, lower = true;  ///< accents: they are stripped
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

/// A step that changes a text before it is split into words.
using Normalizer =
    std::variant<ToForm, ToLower, StripAccents, CleanForBert, Prepend, ReplaceAll, StripBlanks>;

/// The text after all steps in their order.
AlignedText normalized(const std::vector<Normalizer>& steps, AlignedText text);

/// What a split does with the matches. Source: the library tokenizers, SplitDelimiterBehavior.
enum class Delimiters { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// Splits at the matches of a pattern, or, inverted, at the text between them.
struct SplitAt {
  Regex pattern;
  Delimiters delimiters = Delimiters::isolated;
  bool inverted = false;
};
/// Writes bytes as the characters that represent them.
struct ToBytes {
  bool adds_blank = false;  ///< before every part that does not begin with one
};
/// Writes blanks as a character, which may be put in front as well.
struct ToMetaspace {
  std::string character;
  enum class InFront { never, first, always } in_front = InFront::always;
  bool splits = true;  ///< before every such character
};
/// Splits at blanks and isolates punctuation.
struct SplitForBert {};

/// A step that splits a text into words, each of which is tokenized on its own.
using PreTokenizer = std::variant<SplitAt, ToBytes, ToMetaspace, SplitForBert>;

/// The words of a text after all steps in their order; without steps the text is one word.
std::vector<AlignedText> words_of(const std::vector<PreTokenizer>& steps, AlignedText text);

/// GPT-2's pattern: contractions, letters, numbers, other signs, blanks.
extern const char* const gpt2_pattern;

/// A token that is searched for in a text before everything else.
struct AddedToken {
  std::string text;
  std::size_t id = 0;
  bool is_special = false;     ///< not part of the language
  bool is_normalized = false;  ///< searched for in the normalized text, not in the source
  bool takes_blanks_left = false, takes_blanks_right = false;
  bool is_single_word = false;  ///< not inside of a word
};

struct FoundToken {
  Span span;
  std::size_t id = 0;
};

/// The occurrences of added tokens from left to right; of those at the same position the longest.
std::vector<FoundToken> find_added(const std::vector<AddedToken>& tokens, std::string_view text);

}  // namespace core::tokenizers
