#include "core/model/aligned_text.hpp"

#include "core/base/error.hpp"

namespace core::tokenizers {
namespace {

constexpr std::size_t longest_text = std::size_t{1} << 22;

}  // namespace

void AlignedText::append(std::string_view bytes, std::size_t end) {
  require_length(text.size() + bytes.size());
  text += bytes;
  ends.insert(ends.end(), bytes.size(), end);
}

AlignedText AlignedText::part(std::size_t from, std::size_t count) const {
  const auto first = ends.begin() + static_cast<std::ptrdiff_t>(from);
  return {text.substr(from, count),
          {first, first + static_cast<std::ptrdiff_t>(count)},
          from == 0 ? begin : ends[from - 1]};
}

void require_length(std::size_t n_bytes) {
  if (n_bytes > longest_text)
    throw Error("the text cannot be cut into tokens: the steps of the tokenizer make more than " +
                std::to_string(longest_text) + " bytes of it");
}

AlignedText aligned(std::string_view text, std::size_t begin) {
  AlignedText result{std::string(text), {}, begin};
  result.ends.reserve(text.size());
  for (std::size_t k = 1; k <= text.size(); ++k) result.ends.push_back(begin + k);
  return result;
}

}  // namespace core::tokenizers
