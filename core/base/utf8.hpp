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

/// Returns the first character of a text, or nothing if it is empty or begins with invalid bytes.
std::optional<Character> first_character(std::string_view text);

/// Appends one character; U+FFFD for invalid ones.
void append_character(std::string& text, char32_t value);

/// Returns whether a byte starts a character, rather than continues one.
constexpr bool is_character_start(char byte) {
  return (byte & 0xC0) != 0x80;
}

std::size_t character_count(std::string_view text);

/// Returns the text without a leading byte order mark.
std::string_view without_byte_order_mark(std::string_view text);

/// Returns the place of a byte, counted in characters: "line 2, column 5".
std::string line_and_column(std::string_view text, std::size_t at);

/// One character of a text and the place of its bytes.
struct CodePoint {
  char32_t value = 0;
  std::size_t at = 0, size = 1;  ///< bytes
};

/// Returns the characters of UTF-8 text, one for each code point.
///
/// Throws core::Error naming the first byte that is not valid UTF-8 (RFC 3629).
std::vector<CodePoint> code_points(std::string_view text);

/// Returns the same, with U+FFFD for every byte that belongs to no character.
std::u32string decode_utf8_lossy(std::string_view text);

/// Returns whether all of a text is UTF-8.
bool is_utf8(std::string_view text);

/// Returns whether it controls text instead of being printed: both sets of control characters, line ends and
/// marks of text direction.
bool is_control(char32_t c);

/// Returns whether Unicode reserves it forever: U+FFFE and the like, which no file should contain.
bool is_noncharacter(char32_t c);

/// Returns a text on one line, safe for a terminal: controls as "\\x1b" or "\\u202e", and U+FFFD for invalid
/// bytes.
std::string printable(std::string_view text);

/// Returns the same with line ends and tabs kept.
std::string printable_lines(std::string_view text);

/// Returns whether it is two columns wide, like Chinese, Japanese and Korean characters (Unicode Annex 11).
bool is_wide(char32_t c);

/// Returns the Unicode notation: "U+00E9", "U+1F600".
std::string code_point_name(char32_t c);

/// Returns whether it separates words: spaces, tabs and line ends of any script.
bool is_space(char32_t c);

/// Returns whether it is a word of its own: punctuation and signs of ASCII, Latin, general and CJK blocks.
bool is_punctuation(char32_t c);

}  // namespace core::text
