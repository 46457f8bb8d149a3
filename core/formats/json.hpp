#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace core::formats {

/// A JSON value; objects keep the order of the file.
struct Json {
  /// A number: as float64, and exactly as well when it is written as a whole number below 2^64.
  struct Number {
    double value;
    std::optional<std::uint64_t> whole;
    friend bool operator==(const Number&, const Number&) = default;
  };
  using List = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  std::variant<std::nullptr_t, bool, Number, std::string, List, Object> value;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&value);
  }
};

/// Reads one JSON text; file_name stands for it in errors.
///
/// Throws core::Error, one line with the line and column, when the text is not JSON of at most 64 levels in
/// UTF-8, a number is beyond float64, or an object has a key twice.
Json parse_json(std::string_view text, const std::string& file_name);

/// A string in quotes, escaped; bytes that are not UTF-8 become U+FFFD.
std::string json_quoted(std::string_view text);

/// The value as JSON on one line.
std::string json_text(const Json& json);

/// A text cut to a length that fits a message, quoted and on one line.
std::string quoted_briefly(std::string_view text);

}  // namespace core::formats
