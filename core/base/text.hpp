#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Text as bytes; only ASCII characters are interpreted.
namespace core::text {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Returns an ASCII letter in lower case.
constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
std::string lower(std::string_view text);

/// Returns the text without `whitespace` at either end.
std::string_view trimmed(std::string_view text, std::string_view whitespace = " \t");

/// Returns whether a comes before b when digits are compared as numbers: "h.2" before "h.10".
bool natural_less(std::string_view a, std::string_view b);

/// Joins the texts of items, optionally with another separator before the last:
/// joined(causes, ", ", {}, " and ").
///
/// words(item) is the text of one item: a function, or a pointer to a member.
template <typename Items, typename Words = std::identity>
std::string joined(const Items& items, std::string_view between, Words words = {},
                   std::string_view before_last = {}) {
  std::string line;
  for (auto item = items.begin(); item != items.end(); ++item) {
    const bool is_last = !before_last.empty() && std::next(item) == items.end();
    if (item != items.begin()) line += is_last ? before_last : between;
    line += std::invoke(words, *item);
  }
  return line;
}

/// Returns a count and its noun, which has a regular plural: "1 head", "3 heads".
std::string counted(std::size_t count, std::string_view one);

/// Returns lengths as a Python tuple: "(2, 3)", "(2,)".
std::string tuple_text(const std::vector<std::size_t>& lengths);

/// Returns the shape of a matrix: "6×3".
std::string shape_text(std::size_t n_rows, std::size_t n_columns);

/// Returns an amount of memory: "1.5 GiB".
std::string gibibytes(std::uint64_t bytes);

/// Returns the rows of a table as lines, each column as wide as its widest cell and two spaces apart; columns
/// of empty cells are left out. All rows have as many cells as the first.
std::string aligned_table(std::span<const std::vector<std::string>> rows);

/// Returns how many letters to insert, remove or change to turn one word into the other (Levenshtein).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// Returns the hint for an error about an unknown word: "; did you mean \"scale\"?", or "" if no known word
/// is close.
std::string suggestion(std::string_view word, std::initializer_list<std::string_view> known);

constexpr std::string_view hexadecimal_digits = "0123456789abcdef";

/// Returns the last n_digits hexadecimal digits of a number.
inline std::string hexadecimal(std::uint64_t number, int n_digits) {
  std::string text;
  for (int shift = 4 * (n_digits - 1); shift >= 0; shift -= 4)
    text += hexadecimal_digits[number >> shift & 15];
  return text;
}

/// Returns two hexadecimal digits for each byte.
inline std::string hexadecimal(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += hexadecimal(static_cast<unsigned char>(c), 2);
  return text;
}

/// Returns the bytes of such a text, or nothing if it is not one.
inline std::optional<std::string> parse_hexadecimal(std::string_view digits) {
  std::string bytes;
  if (digits.size() % 2 != 0) return std::nullopt;
  for (std::size_t k = 0; k < digits.size(); k += 2) {
    const std::size_t high = hexadecimal_digits.find(digits[k]), low = hexadecimal_digits.find(digits[k + 1]);
    if (high == hexadecimal_digits.npos || low == hexadecimal_digits.npos) return std::nullopt;
    bytes += static_cast<char>(high << 4 | low);
  }
  return bytes;
}

/// Part of a formula that is written in one size.
struct FormulaPiece {
  std::string_view text;
  bool subscript = false;
};

/// Splits "X·W_q + b_12" into "X·W", q, " + b" and 12: one letter or all digits after an underscore are a
/// subscript. No piece is empty; pieces are views of the given text.
std::vector<FormulaPiece> formula_pieces(std::string_view formula);

}  // namespace core::text
