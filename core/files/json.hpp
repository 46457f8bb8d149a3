#pragma once

#include <armadillo>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text.hpp"

namespace core::formats {

using JsonValue = nlohmann::ordered_json;

/// Numbers allowed in a file: JSON has only finite ones, so others are written "inf", "-inf" and "nan".
enum class AllowedNumbers { finite, any };

/// A word of a file and its meaning.
template <class Meaning>
struct Word {
  const char* text;
  Meaning meaning;
};
template <class Meaning>
Word(const char*, Meaning) -> Word<Meaning>;

/// A value in a JSON text that knows its path, for error messages; objects keep the order of the text. Copies
/// share the parsed document.
///
/// Every member that reads a value throws core::Error, "FILE: PATH: expected …, got …".
class Json {
 public:
  /// Throws core::Error about this value, "expected …, got …"; got describes the value by default.
  [[noreturn]] void fail(const std::string& expected, std::optional<std::string> got = {}) const;

  /// Returns "FILE: PATH: ", the beginning of every error about this value; searches the whole text for it.
  std::string place() const;

  bool is_null() const;
  bool is_list() const;
  bool is_text() const;
  bool is_boolean() const;
  bool is_object() const;
  bool is_number() const;
  bool is_whole() const;  ///< written as a whole number below 2^64

  /// Throws core::Error unless this is an object with no other keys than these.
  void expect_keys(std::initializer_list<std::string_view> known) const;
  /// Returns the member with a key, or nothing, also if this is not an object.
  std::optional<Json> member(std::string_view key) const;
  /// Returns the same, but nothing if it is null.
  std::optional<Json> given(std::string_view key) const;
  /// Returns a member that must be present.
  Json required(std::string_view key) const;
  /// Returns all members of an object.
  std::vector<std::pair<std::string, Json>> members() const;

  /// Returns the items of a list that must not be empty.
  std::vector<Json> items(const char* expected) const;
  /// Returns the items of a list, which may be empty.
  std::vector<Json> items_or_empty(const char* expected) const;
  /// Returns the items of a list of exactly count items.
  std::vector<Json> items(const char* expected, std::size_t count) const;
  /// Returns the items of a list, which may be empty, of whole numbers or strings.
  std::vector<std::uint64_t> whole_numbers(const char* expected) const;
  std::vector<std::string> texts(const char* expected) const;
  /// Returns the first item, or nothing, also if this is not a list.
  std::optional<Json> first() const;

  bool boolean() const;
  double number(AllowedNumbers which = AllowedNumbers::finite) const;
  /// Returns a whole number that counts something in memory.
  std::size_t whole(std::uint64_t min_value) const;
  /// Returns a whole number within bounds.
  std::uint64_t whole(std::uint64_t min_value, std::uint64_t max_value) const;
  const std::string& text() const;
  /// Returns a list of numbers, which may be empty, as a matrix [1, n].
  arma::mat row() const;
  /// Returns a list of at least one row, all of equal length, as a matrix.
  arma::mat matrix(AllowedNumbers which = AllowedNumbers::finite) const;

  template <class Meaning, std::size_t n>
  Meaning word(const std::array<Word<Meaning>, n>& words, const std::string& or_else = "") const {
    std::string expected;
    for (const auto& w : words) {
      if (is_text() && text() == w.text) return w.meaning;
      expected += (expected.empty() ? "one of \"" : ", \"") + std::string(w.text) + "\"";
    }
    fail(expected + or_else);
  }

 private:
  struct Document;

  Json(std::shared_ptr<const Document> document, const JsonValue& value);
  void fill_row(arma::mat& matrix, std::size_t i, AllowedNumbers which) const;

  std::shared_ptr<const Document> document_;
  const JsonValue* value_;

  friend Json parse_json(std::string_view text, const std::string& file_name);
  friend std::string json_text(const Json& json);
};

/// Reads one JSON text; file_name is its name in errors.
///
/// Throws core::Error, one line with the line and column, when the text is not JSON of at most 64 levels in
/// UTF-8, a number is beyond float64, or an object has a key twice.
Json parse_json(std::string_view text, const std::string& file_name);

/// Returns the line, from 1, where the value at a path begins in a valid JSON text: "steps[2].done"; of the
/// nearest value around it where there is none.
std::size_t line_of_path(std::string_view text, std::string_view path);

// JSON as text, for files and output whose layout is fixed.

/// Returns the items of a list, as item_text(item) gives them: "[1, 2]".
template <class Items, class ItemText>
std::string json_list(const Items& items, ItemText item_text, std::string_view between = ", ") {
  return "[" + text::joined(items, between, item_text) + "]";
}
/// Returns an object of members that are JSON, without those that are "": "{"a": 1, "b": null}".
std::string json_object(std::initializer_list<std::pair<const char*, std::string>> members);
constexpr const char* json_boolean(bool is_so) {
  return is_so ? "true" : "false";
}
/// Returns the quoted text, null if it is "".
std::string quoted_or_null(const std::string& text);

/// Returns a quoted and escaped string without control characters; bytes that are not UTF-8 become U+FFFD.
std::string json_quoted(std::string_view text);

/// Returns the value as JSON on one line.
std::string json_text(const Json& json);

/// Returns the JSON text with a merge patch applied (RFC 7386): null removes a member. Both are valid JSON.
std::string apply_merge_patch(std::string_view text, std::string_view patch);

/// Returns a text shortened to fit a message, quoted and on one line.
std::string quoted_briefly(std::string_view text);

}  // namespace core::formats
