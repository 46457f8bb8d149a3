#pragma once

#include <algorithm>
#include <vector>

#include "core/graph/compare.hpp"

namespace support {

/// The first stage that differs, or nullptr when A and B are equal in every stage.
inline const core::compare::StageDifference* first_difference(
    const std::vector<core::compare::StageDifference>& stages) {
  const auto found = std::ranges::find_if(stages, &core::compare::StageDifference::differs);
  return found == stages.end() ? nullptr : &*found;
}

}  // namespace support
