#include "core/text/code_points.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "core/error.hpp"

namespace core::text {
namespace {

struct Range {
  char32_t first, last;
};

/// General punctuation, without the spaces and the invisible joiners.
constexpr std::array punctuation{
    Range{0x21, 0x2F},     Range{0x3A, 0x40},     Range{0x5B, 0x5E},     Range{0x60, 0x60},
    Range{0x7B, 0x7E},     Range{0xA1, 0xA9},     Range{0xAB, 0xAC},     Range{0xAE, 0xB1},
    Range{0xB4, 0xB4},     Range{0xB6, 0xB8},     Range{0xBB, 0xBB},     Range{0xBF, 0xBF},
    Range{0xD7, 0xD7},     Range{0xF7, 0xF7},     Range{0x2010, 0x2027}, Range{0x2030, 0x205E},
    Range{0x3001, 0x3003}, Range{0x3008, 0x3011}, Range{0x3014, 0x301F}, Range{0xFF01, 0xFF0F},
    Range{0xFF1A, 0xFF20}, Range{0xFF3B, 0xFF40}, Range{0xFF5B, 0xFF65}};

constexpr std::array spaces{Range{0x09, 0x0D},     Range{0x20, 0x20},     Range{0x85, 0x85},
                            Range{0xA0, 0xA0},     Range{0x1680, 0x1680}, Range{0x2000, 0x200A},
                            Range{0x2028, 0x2029}, Range{0x202F, 0x202F}, Range{0x205F, 0x205F},
                            Range{0x3000, 0x3000}};

template <std::size_t n>
bool is_in(const std::array<Range, n>& ranges, char32_t c) {
  return std::any_of(ranges.begin(), ranges.end(), [c](Range r) { return r.first <= c && c <= r.last; });
}

unsigned char byte(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

/// How many bytes a character has that begins with this one; 0 when none does.
std::size_t length_after(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  return first >= 0xF0 && first < 0xF5 ? 4 : 0;
}

/// The smallest code point that needs so many bytes.
constexpr std::array<char32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};

/// The character that begins at a byte, or nothing when none does.
std::optional<CodePoint> decoded(std::string_view text, std::size_t at) {
  const std::size_t size = length_after(byte(text, at));
  if (size == 0 || size > text.size() - at) return std::nullopt;
  char32_t value = size == 1 ? byte(text, at) : byte(text, at) & (0x7Fu >> size);
  for (std::size_t k = 1; k < size; ++k) {
    if ((byte(text, at + k) & 0xC0) != 0x80) return std::nullopt;
    value = value << 6 | (byte(text, at + k) & 0x3F);
  }
  const bool surrogate = value >= 0xD800 && value < 0xE000;
  if (value < smallest[size] || value > 0x10FFFF || surrogate) return std::nullopt;
  return CodePoint{value, at, size};
}

}  // namespace

std::vector<CodePoint> code_points(std::string_view text) {
  std::vector<CodePoint> points;
  for (std::size_t at = 0; at < text.size(); at += points.back().size) {
    const auto point = decoded(text, at);
    if (!point) throw Error("text: byte " + std::to_string(at) + " is no valid UTF-8");
    points.push_back(*point);
  }
  return points;
}

std::u32string repaired_characters(std::string_view text) {
  std::u32string characters;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decoded(text, at).value_or(CodePoint{U'\uFFFD', at, 1});
    characters += point.value;
    at += point.size;
  }
  return characters;
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto point = decoded(text, at);
    if (!point) return false;
    at += point->size;
  }
  return true;
}

bool is_space(char32_t c) {
  return is_in(spaces, c);
}

bool is_punctuation(char32_t c) {
  return is_in(punctuation, c);
}

}  // namespace core::text
