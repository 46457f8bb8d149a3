#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace core::tokenizers {

/// A text on its way to becoming tokens, which knows what of the source each of its bytes stands for.
struct AlignedText {
  std::string text;
  std::vector<std::size_t>
      ends;               ///< [byte]: bytes of the source from its beginning up to what the byte is of
  std::size_t begin = 0;  ///< bytes of the source before this text

  bool empty() const { return text.empty(); }
  /// Appends bytes that all stand for the source up to that end. Throws core::Error as require_length() does.
  void append(std::string_view bytes, std::size_t end);
  /// A part of it, by bytes.
  AlignedText part(std::size_t from, std::size_t count) const;
};

/// Throws core::Error when steps of a tokenizer have made more bytes of a text than any does that was made to
/// be used: a few of them, each of which doubles it, would fill the memory.
void require_length(std::size_t n_bytes);

/// A part of a source that begins at that byte of it, as it is.
AlignedText aligned(std::string_view text, std::size_t begin);

}  // namespace core::tokenizers
