#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Characters of UTF-8 text (RFC 3629), one for each code point.
namespace core::text {

struct Character {
  char32_t value = 0;
  std::size_t size = 1;  ///< bytes
};

/// The character that a text begins with, or nothing when it is empty or begins with what is not valid.
std::optional<Character> first_character(std::string_view text);

/// Appends one character; U+FFFD for what is no character.
void append_character(std::string& text, char32_t value);

/// Whether a character begins with this byte, and does not go on with it.
constexpr bool starts_character(char byte) {
  return (byte & 0xC0) != 0x80;
}

std::size_t character_count(std::string_view text);

/// The text without the byte order mark that it may begin with.
std::string_view without_byte_order_mark(std::string_view text);

/// "line 2, column 5": where a byte stands, in characters.
std::string place_words(std::string_view text, std::size_t at);

/// One character of a text and where its bytes stand.
struct CodePoint {
  char32_t value = 0;
  std::size_t at = 0, size = 1;  ///< bytes
};

/// The characters of UTF-8 text, one for each code point.
///
/// Throws core::Error naming the first byte that is not valid UTF-8 (RFC 3629).
std::vector<CodePoint> code_points(std::string_view text);

/// The same, where every byte that belongs to no character becomes U+FFFD.
std::u32string repaired_characters(std::string_view text);

/// Whether all of a text is UTF-8.
bool is_utf8(std::string_view text);

/// Whether it does something to a line instead of standing on it: control characters of both sets, line ends
/// and the marks that turn the direction of what follows.
bool is_control(char32_t c);

/// Whether Unicode will never make it a character: U+FFFE and its like, which no file should hold.
bool is_noncharacter(char32_t c);

/// A text on one line as a terminal may be given it: what is_control, as "\\x1b" or "\\u202e", and U+FFFD for
/// bytes that are no UTF-8.
std::string printable(std::string_view text);

/// The same with its line ends and tabs as they are.
std::string printable_lines(std::string_view text);

/// Whether it takes the room of two letters, as Chinese, Japanese and Korean do (Unicode Annex 11).
bool is_wide(char32_t c);

/// "U+00E9", "U+1F600": how Unicode names it.
std::string code_point_name(char32_t c);

/// Whether it separates words: blanks, tabs and line ends of any script.
bool is_space(char32_t c);

/// Whether it stands as a word of its own: marks and signs of ASCII, Latin, general and CJK punctuation.
bool is_punctuation(char32_t c);

}  // namespace core::text
