#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Lists in one text: of words separated by spaces, as in tables of constants, and of other parts.
namespace core::text {

/// Returns whether is_it(word) holds for any word of a list.
template <class IsIt>
bool any_word(std::string_view list, IsIt is_it) {
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(' ', at), list.size());
    if (end > at && is_it(list.substr(at, end - at))) return true;
    at = end + 1;
  }
  return false;
}

inline std::vector<std::string_view> split_words(std::string_view list) {
  std::vector<std::string_view> words;
  any_word(list, [&](std::string_view word) { return words.push_back(word), false; });
  return words;
}

inline bool has_word(std::string_view list, std::string_view word) {
  return any_word(list, [&](std::string_view each) { return each == word; });
}

/// Returns whether any word of a list is a part of a name.
inline bool contains_any_word(std::string_view name, std::string_view list) {
  return any_word(list, [&](std::string_view word) { return name.find(word) != name.npos; });
}

/// Returns the parts between separators; behind a separator at the end there is none.
inline std::vector<std::string> split(std::string_view list, char separator) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(separator), list.size());
    parts.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return parts;
}

}  // namespace core::text
