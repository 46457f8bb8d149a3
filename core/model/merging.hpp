#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "core/model/vocabulary.hpp"

namespace core::tokenizers {

/// What two neighbours become, and how soon: the smaller goes first.
struct Merge {
  double order = 0;
  std::size_t id = 0;
};

/// Merges neighbours until none can be: the soonest of all first, and of equal ones the one on the left.
///
/// merge_of(left, right) tells what two pieces become, if anything.
std::vector<Piece> merged(std::vector<Piece> pieces,
                          const std::function<std::optional<Merge>(const Piece& left, std::size_t left_begin,
                                                                   const Piece& right)>& merge_of);

}  // namespace core::tokenizers
