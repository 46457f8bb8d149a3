#pragma once

#include <algorithm>
#include <vector>

#include "core/graph/compare.hpp"

namespace support {

/// Returns the first stage that differs, or nullptr if A and B are equal in every stage.
inline const core::compare::StageDifference* first_difference(
    const std::vector<core::compare::StageDifference>& stages) {
  const auto found = std::ranges::find_if(stages, &core::compare::StageDifference::differs);
  return found == stages.end() ? nullptr : &*found;
}

}  // namespace support
