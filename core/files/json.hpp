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

namespace core::formats {

/// Which numbers a file may hold: JSON has finite ones only, so others are written "inf", "-inf" and "nan".
enum class Numbers { finite, any };

/// A word of a file and its meaning.
template <class Meaning>
struct Word {
  const char* text;
  Meaning meaning;
};
template <class Meaning>
Word(const char*, Meaning) -> Word<Meaning>;

/// A value in a JSON text, which knows its path in it, so that whatever is wrong with it can be named;
/// objects keep the order of the text. Copies share what was read.
///
/// Every reading member throws core::Error, "FILE: PATH: expected …, got …".
class Json {
 public:
  /// Throws core::Error about this place: what was expected, and what it got when that is not said.
  [[noreturn]] void fail(const std::string& expected, std::optional<std::string> got = {}) const;

  /// "FILE: PATH: ", as every error about this place begins. The path is searched for in the whole text.
  std::string place() const;

  bool is_null() const;
  bool is_list() const;
  bool is_text() const;
  bool is_boolean() const;
  bool is_object() const;
  bool is_number() const;
  bool is_whole() const;  ///< written as a whole number below 2^64

  /// Makes sure that this is an object with no other keys than these.
  void expect_keys(std::initializer_list<std::string_view> known) const;
  /// The member under a key, or nothing, also when this is no object.
  std::optional<Json> member(std::string_view key) const;
  /// The same, and nothing where it is null.
  std::optional<Json> given(std::string_view key) const;
  /// The member that must be there.
  Json required(std::string_view key) const;
  /// All members of an object.
  std::vector<std::pair<std::string, Json>> members() const;

  /// The items of a list that has some.
  std::vector<Json> items(const char* expected) const;
  /// The items of a list, which may be empty.
  std::vector<Json> items_if_any(const char* expected) const;
  /// The items of a list of exactly count.
  std::vector<Json> items(const char* expected, std::size_t count) const;
  /// Those of a list of whole numbers, and of strings, which may be empty.
  std::vector<std::uint64_t> wholes(const char* expected) const;
  std::vector<std::string> texts(const char* expected) const;
  /// The first item, or nothing, also when this is no list.
  std::optional<Json> first() const;

  bool boolean() const;
  double number(Numbers which = Numbers::finite) const;
  /// A whole number of at least smallest.
  std::uint64_t whole(std::uint64_t smallest) const;
  const std::string& text() const;
  /// A list of numbers as a matrix of one row; it may be empty.
  arma::mat row() const;
  /// A list of rows of equal length, at least one.
  arma::mat matrix(Numbers which = Numbers::finite) const;

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
  using Value = nlohmann::ordered_json;
  struct Document;

  Json(std::shared_ptr<const Document> document, const Value& value);
  void fill_row(arma::mat& matrix, std::size_t i, Numbers which) const;

  std::shared_ptr<const Document> document_;
  const Value* value_;

  friend Json parse_json(std::string_view text, const std::string& file_name);
  friend std::string json_text(const Json& json);
};

/// Reads one JSON text; file_name is its name in errors.
///
/// Throws core::Error, one line with the line and column, when the text is not JSON of at most 64 levels in
/// UTF-8, a number is beyond float64, or an object has a key twice.
Json parse_json(std::string_view text, const std::string& file_name);

/// A string in quotes, escaped, with nothing in it that a terminal obeys; bytes that are not UTF-8 become
/// U+FFFD.
std::string json_quoted(std::string_view text);

/// The value as JSON on one line.
std::string json_text(const Json& json);

/// Returns the JSON text with a merge patch applied, as RFC 7386 says: null removes a member. Both are valid
/// JSON.
std::string json_merged(std::string_view text, std::string_view patch);

/// A text cut to a length that fits a message, quoted and on one line.
std::string quoted_briefly(std::string_view text);

}  // namespace core::formats
