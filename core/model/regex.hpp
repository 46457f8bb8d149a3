#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/dialect.hpp"

namespace core::tokenizers {

/// Where something stands in a text, in bytes.
struct Span {
  std::size_t begin = 0, end = 0;
  friend bool operator==(const Span&, const Span&) = default;
};

/// A regular expression of UTF-8 text, with the properties of Unicode. Copies share what was compiled; safe
/// between threads.
class Regex {
 public:
  /// Throws core::Error, "PLACEexpected …", when it cannot be compiled.
  Regex(const std::string& pattern, const std::string& place, Dialect dialect = Dialect::oniguruma);

  /// Everything that it matches, from left to right; empty matches are passed over.
  ///
  /// Throws core::Error when a match would take longer than any text of a person does.
  std::vector<Span> matches(std::string_view text) const;

 private:
  std::shared_ptr<const void> code_;
};

/// The text as a pattern that matches nothing else.
std::string escaped_pattern(std::string_view text);

}  // namespace core::tokenizers
