#include "core/base/nearest.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace core::text {

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j)
      diagonal =
          std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])}));
  }
  return row.back();
}

std::string suggestion(std::string_view word, std::initializer_list<std::string_view> known) {
  constexpr std::size_t longest = 40, farthest = 2;
  if (word.size() > longest) return "";
  const auto nearest =
      std::ranges::min_element(known, {}, [&](std::string_view k) { return distance(word, k); });
  return distance(word, *nearest) <= farthest ? "; did you mean \"" + std::string(*nearest) + "\"?" : "";
}

}  // namespace core::text
