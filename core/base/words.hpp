#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace core::text {

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

}  // namespace core::text
