#pragma once

#include <optional>

#include "core/importing/import.hpp"

namespace core::importing {

/// Turns weights [.., queries, keys, heads] into [.., heads, queries, keys] when the axis that sums to 1
/// tells that they are kept so, which is said; others stay.
formats::Tensor with_heads_in_front(formats::Tensor weights, Account& account);

/// How many heads queries, keys or values have by their name, where nobody has said it; else it is said that
/// heads are taken to stand before tokens.
std::optional<std::size_t> heads_by_name(const formats::TensorInfo& info, Account& account);

/// Queries, keys or values of so many heads, [.., heads, tokens, d_head]: split are [1, tokens, columns] and
/// [sequences, tokens, columns], turned is [sequences, tokens, heads, d_head]; what was done is said. Without
/// a number of heads, and of two axes, they stay.
///
/// Throws core::Error, "PLACEexpected …", when that many heads cannot be in the shape.
formats::Tensor with_heads(formats::Tensor tensor, std::optional<std::size_t> n_heads,
                           const std::string& place, Account& account);

}  // namespace core::importing
