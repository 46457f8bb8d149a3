#include "core/base/words.hpp"

#include <cstdio>

namespace core::text {

std::string counted(std::size_t count, std::string_view one) {
  return std::to_string(count) + " " + std::string(one) + (count == 1 ? "" : "s");
}

std::string tuple_text(const std::vector<std::size_t>& lengths) {
  const auto words = [](std::size_t length) { return std::to_string(length); };
  return "(" + joined(lengths, ", ", words) + (lengths.size() == 1 ? ",)" : ")");
}

std::string shape_text(std::size_t n_rows, std::size_t n_columns) {
  return std::to_string(n_rows) + "×" + std::to_string(n_columns);
}

std::string gibibytes(std::uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / 0x1p30);
  return text;
}

}  // namespace core::text
