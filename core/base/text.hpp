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

/// Text byte by byte: only ASCII is told apart.
namespace core::text {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// A capital as its small letter.
constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
std::string lower(std::string_view text);

/// The text without the blanks at both ends.
std::string_view trimmed(std::string_view text, std::string_view blanks = " \t");

/// The order of names in which numbers count as numbers do: "h.2" comes before "h.10".
bool comes_before(std::string_view a, std::string_view b);

/// Items in a row with the same words between each two, perhaps others between the last two:
/// joined(causes, ", ", {}, " and ").
///
/// words(item) is the text of one item: a function, or a member that holds it.
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

/// "1 head", "3 heads": an amount of what has a plain plural.
std::string counted(std::size_t count, std::string_view one);

/// Lengths as a tuple of Python: "(2, 3)", "(2,)".
std::string tuple_text(const std::vector<std::size_t>& lengths);

/// The shape of a matrix: "6×3".
std::string shape_text(std::size_t n_rows, std::size_t n_columns);

/// An amount of memory: "1.5 GiB".
std::string gibibytes(std::uint64_t bytes);

/// Rows of a table as lines, each column as wide as its widest cell and two blanks apart; a column whose
/// cells are all empty is left out. All rows have as many cells as the first.
std::string in_columns(std::span<const std::vector<std::string>> rows);

/// How many letters must be put in, taken out or changed to make one word the other (Levenshtein).
std::size_t distance(std::string_view a, std::string_view b);

/// What to add to an error about a word that is none of the known ones: "; did you mean \"scale\"?", or
/// nothing when none is near.
std::string suggestion(std::string_view word, std::initializer_list<std::string_view> known);

constexpr std::string_view hexadecimal_digits = "0123456789abcdef";

/// The last digits of a number, as many as asked for.
inline std::string hexadecimal(std::uint64_t number, int n_digits) {
  std::string text;
  for (int shift = 4 * (n_digits - 1); shift >= 0; shift -= 4)
    text += hexadecimal_digits[number >> shift & 15];
  return text;
}

/// Two digits for each byte.
inline std::string hexadecimal(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += hexadecimal(static_cast<unsigned char>(c), 2);
  return text;
}

/// The bytes of such a text; nothing where it is none.
inline std::optional<std::string> bytes_of_hexadecimal(std::string_view digits) {
  std::string bytes;
  if (digits.size() % 2 != 0) return std::nullopt;
  for (std::size_t k = 0; k < digits.size(); k += 2) {
    const std::size_t high = hexadecimal_digits.find(digits[k]), low = hexadecimal_digits.find(digits[k + 1]);
    if (high == hexadecimal_digits.npos || low == hexadecimal_digits.npos) return std::nullopt;
    bytes += static_cast<char>(high << 4 | low);
  }
  return bytes;
}

/// A part of a formula that is written in one size.
struct FormulaPiece {
  std::string_view text;
  bool subscript = false;
};

/// "X·W_q + b_12" as "X·W", q, " + b" and 12: behind an underscore a letter or all digits are lowered. No
/// piece is empty; they are parts of the text given.
std::vector<FormulaPiece> formula_pieces(std::string_view formula);

}  // namespace core::text
