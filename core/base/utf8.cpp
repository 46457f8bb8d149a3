#include "core/base/utf8.hpp"

#include <algorithm>
#include <array>

namespace core::text {
namespace {

constexpr char32_t replacement = 0xFFFD;

/// The smallest code point that needs so many bytes.
constexpr std::array<char32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};

bool is_character(char32_t value) {
  const bool surrogate = value >= 0xD800 && value < 0xE000;
  return value <= 0x10FFFF && !surrogate;
}

/// How many bytes a character has that begins with this one; 0 when none does.
std::size_t size_after(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  return first >= 0xF0 && first < 0xF5 ? 4 : 0;
}

}  // namespace

std::optional<Character> first_character(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t size = size_after(first);
  if (size == 0 || size > text.size()) return std::nullopt;
  char32_t value = size == 1 ? first : first & (0x7Fu >> size);
  for (const char byte : text.substr(1, size - 1)) {
    if (starts_character(byte)) return std::nullopt;
    value = value << 6 | (static_cast<unsigned char>(byte) & 0x3F);
  }
  if (value < smallest[size] || !is_character(value)) return std::nullopt;
  return Character{value, size};
}

void append_character(std::string& text, char32_t value) {
  if (!is_character(value)) value = replacement;
  std::size_t size = 1;
  while (size < 4 && value >= smallest[size + 1]) ++size;
  if (size == 1) {
    text += static_cast<char>(value);
    return;
  }
  text += static_cast<char>(0xF00u >> size | value >> 6 * (size - 1));  // as many ones as bytes lead
  for (std::size_t k = size - 1; k-- > 0;) text += static_cast<char>(0x80 | (value >> 6 * k & 0x3F));
}

std::size_t character_count(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, starts_character));
}

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  return text.starts_with(mark) ? text.substr(mark.size()) : text;
}

std::string place_words(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  const std::string_view on_line = before.substr(before.rfind('\n') + 1);  // npos + 1 is 0: the first line
  return "line " + std::to_string(std::ranges::count(before, '\n') + 1) + ", column " +
         std::to_string(character_count(on_line) + 1);
}

}  // namespace core::text
