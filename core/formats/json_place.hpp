#pragma once

#include <armadillo>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/formats/json.hpp"

namespace core::formats {

/// Which numbers a file may hold: JSON has finite ones only, so others are written "inf", "-inf" and "nan".
enum class Numbers { finite, any };

/// A word of a file and what it stands for.
template <class Meaning>
struct Word {
  const char* text;
  Meaning meaning;
};

/// A value in a JSON file together with where it stands, so that whatever is wrong with it can be named.
///
/// Every reading member throws core::Error, "FILE: PATH: expected …, got …". The Json and the file name must
/// outlive it.
class JsonPlace {
 public:
  JsonPlace(const Json& json, const std::string& file_name, std::string path = "")
      : json_(&json), file_name_(&file_name), path_(std::move(path)) {}

  /// Throws core::Error about this place: what was expected, and what it got when that is not said.
  [[noreturn]] void fail(const std::string& expected, std::optional<std::string> got = {}) const;

  bool is_null() const { return json_->as<std::nullptr_t>() != nullptr; }
  bool is_list() const { return json_->as<Json::List>() != nullptr; }
  bool is_text() const { return json_->as<std::string>() != nullptr; }
  const Json& json() const { return *json_; }

  /// Makes sure that this is an object with no other keys than these.
  void expect_keys(std::initializer_list<std::string_view> known) const;
  /// The member of this object under a key, or nothing.
  std::optional<JsonPlace> member(std::string_view key) const;
  /// The member that must be there.
  JsonPlace required(std::string_view key) const;

  /// The items of a list of at least one.
  std::vector<JsonPlace> items(const char* expected) const;

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
  void fill_row(arma::mat& matrix, std::size_t i, Numbers which) const;

  const Json* json_;
  const std::string* file_name_;
  std::string path_;
};

}  // namespace core::formats
