#include "core/base/utf8.hpp"

#include <fmt/core.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace core::text {
std::optional<Character> first_character(std::string_view text) {
  utf8proc_int32_t value = 0;
  const auto size =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                       static_cast<utf8proc_ssize_t>(std::min<std::size_t>(text.size(), 4)), &value);
  if (size <= 0) return std::nullopt;
  return Character{static_cast<char32_t>(value), static_cast<std::size_t>(size)};
}

void append_character(std::string& text, char32_t value) {
  const bool surrogate = value >= 0xD800 && value < 0xE000;
  const auto point = static_cast<utf8proc_int32_t>(value > 0x10FFFF || surrogate ? 0xFFFD : value);
  std::array<utf8proc_uint8_t, 4> bytes;
  text.append(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::size_t>(utf8proc_encode_char(point, bytes.data())));
}

std::size_t character_count(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, is_character_start));
}

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  return text.starts_with(mark) ? text.substr(mark.size()) : text;
}

std::string line_and_column(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  const std::string_view on_line = before.substr(before.rfind('\n') + 1);  // npos + 1 is 0: the first line
  return fmt::format("line {}, column {}", std::ranges::count(before, '\n') + 1,
                     character_count(on_line) + 1);
}

namespace {

struct CodeRange {
  char32_t first, last;
};

/// Punctuation and signs, without spaces and invisible joiners.
constexpr std::array punctuation{
    CodeRange{0x21, 0x2F},     CodeRange{0x3A, 0x40},     CodeRange{0x5B, 0x5E},
    CodeRange{0x60, 0x60},     CodeRange{0x7B, 0x7E},     CodeRange{0xA1, 0xA9},
    CodeRange{0xAB, 0xAC},     CodeRange{0xAE, 0xB1},     CodeRange{0xB4, 0xB4},
    CodeRange{0xB6, 0xB8},     CodeRange{0xBB, 0xBB},     CodeRange{0xBF, 0xBF},
    CodeRange{0xD7, 0xD7},     CodeRange{0xF7, 0xF7},     CodeRange{0x2010, 0x2027},
    CodeRange{0x2030, 0x205E}, CodeRange{0x3001, 0x3003}, CodeRange{0x3008, 0x3011},
    CodeRange{0x3014, 0x301F}, CodeRange{0xFF01, 0xFF0F}, CodeRange{0xFF1A, 0xFF20},
    CodeRange{0xFF3B, 0xFF40}, CodeRange{0xFF5B, 0xFF65}};

constexpr std::array spaces{CodeRange{0x09, 0x0D},     CodeRange{0x20, 0x20},     CodeRange{0x85, 0x85},
                            CodeRange{0xA0, 0xA0},     CodeRange{0x1680, 0x1680}, CodeRange{0x2000, 0x200A},
                            CodeRange{0x2028, 0x2029}, CodeRange{0x202F, 0x202F}, CodeRange{0x205F, 0x205F},
                            CodeRange{0x3000, 0x3000}};

constexpr std::array controls{CodeRange{0x00, 0x1F},     CodeRange{0x7F, 0x9F},
                              CodeRange{0x61C, 0x61C},   CodeRange{0x200E, 0x200F},
                              CodeRange{0x2028, 0x202E}, CodeRange{0x2066, 0x2069}};

/// Appends "\\x1b" or "\\u202e".
void append_escaped(std::string& text, char32_t c) {
  text += c < 0x100 ? "\\x" + hexadecimal(c, 2) : "\\u" + hexadecimal(c, 4);
}

template <std::size_t n>
bool is_in(const std::array<CodeRange, n>& ranges, char32_t c) {
  return std::any_of(ranges.begin(), ranges.end(), [c](CodeRange r) { return r.first <= c && c <= r.last; });
}

}  // namespace

std::vector<CodePoint> code_points(std::string_view text) {
  std::vector<CodePoint> points;
  for (std::size_t at = 0; at < text.size(); at += points.back().size) {
    const auto character = first_character(text.substr(at));
    if (!character) throw Error(fmt::format("text: byte {} is no valid UTF-8", at));
    points.push_back({character->value, at, character->size});
  }
  return points;
}

std::u32string decode_utf8_lossy(std::string_view text) {
  std::u32string characters;
  for (std::size_t at = 0; at < text.size();) {
    const auto character = first_character(text.substr(at));
    characters += character ? character->value : U'\uFFFD';
    at += character ? character->size : 1;
  }
  return characters;
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto character = first_character(text.substr(at));
    if (!character) return false;
    at += character->size;
  }
  return true;
}

bool is_control(char32_t c) {
  return is_in(controls, c);
}

bool is_noncharacter(char32_t c) {
  return (c >= 0xFDD0 && c <= 0xFDEF) || (c & 0xFFFE) == 0xFFFE;
}

std::string printable(std::string_view text) {
  std::string line;
  for (const char32_t c : decode_utf8_lossy(text)) {
    if (is_control(c))
      append_escaped(line, c);
    else
      append_character(line, c);
  }
  return line;
}

std::string printable_lines(std::string_view text) {
  std::string lines;
  while (true) {
    const std::size_t end = text.find_first_of("\n\t");
    lines += printable(text.substr(0, end));
    if (end == text.npos) return lines;
    lines += text[end];
    text.remove_prefix(end + 1);
  }
}

std::string code_point_name(char32_t c) {
  std::string digits = hexadecimal(c, c > 0xFFFF ? 5 : 4);
  std::ranges::transform(digits, digits.begin(),
                         [](unsigned char digit) { return static_cast<char>(std::toupper(digit)); });
  return "U+" + digits;
}

bool is_wide(char32_t c) {
  return utf8proc_charwidth(static_cast<utf8proc_int32_t>(c)) == 2;
}

bool is_space(char32_t c) {
  return is_in(spaces, c);
}

bool is_punctuation(char32_t c) {
  return is_in(punctuation, c);
}

}  // namespace core::text
