#include "core/tokenizers/aligned_text.hpp"

namespace core::tokenizers {

void AlignedText::append(std::string_view bytes, std::size_t end) {
  text += bytes;
  ends.insert(ends.end(), bytes.size(), end);
}

AlignedText AlignedText::part(std::size_t from, std::size_t count) const {
  const auto first = ends.begin() + static_cast<std::ptrdiff_t>(from);
  return {text.substr(from, count),
          {first, first + static_cast<std::ptrdiff_t>(count)},
          from == 0 ? begin : ends[from - 1]};
}

AlignedText aligned(std::string_view text, std::size_t begin) {
  AlignedText result{std::string(text), {}, begin};
  result.ends.reserve(text.size());
  for (std::size_t k = 1; k <= text.size(); ++k) result.ends.push_back(begin + k);
  return result;
}

}  // namespace core::tokenizers
