#pragma once

#include <vector>

#include "core/graph/explain.hpp"

namespace core::explain {

/// One cell worked out from its direct operands: one step, or two when a bias is added to a projection.
std::vector<Step> steps_of(const Model& model, const Trace& trace, const CellAddress& cell);

}  // namespace core::explain
