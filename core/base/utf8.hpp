#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

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

}  // namespace core::text
