#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace core::text {

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

/// Whether it separates words: blanks, tabs and line ends of any script.
bool is_space(char32_t c);

/// Whether it stands as a word of its own: marks and signs of ASCII, Latin, general and CJK punctuation.
bool is_punctuation(char32_t c);

}  // namespace core::text
