#pragma once

#include <optional>

#include "core/files/table.hpp"
#include "core/importing/account.hpp"

namespace core::importing {

/// Says of a table whose first line counts, when nobody has said what that is, that it was taken for numbers.
inline void note_counting_line(const formats::TensorFile& file, const formats::Tensor& tensor,
                               const std::optional<bool>& said, Account& account) {
  if (said) return;
  if (const std::string words = counting_line_words(file, tensor); !words.empty())
    account.assumed.push_back(words +
                              ", is a row of numbers and no names of columns (--first-line says which)");
}

}  // namespace core::importing
