#pragma once

#include "core/graph/model.hpp"
#include "core/graph/trace.hpp"

namespace core::attention {

/// Computes every stage of attention for one sequence of the model, in the order of the paper.
///
/// Throws core::Error when check(model) finds a problem or there is no such sequence.
/// Source: Vaswani et al. 2017, sections 3.2.1 and 3.2.2.
Trace attend(const Model& model, std::size_t sequence = 0);

/// Does the same for a model that has passed check(), as after edits, and a sequence that it has.
Trace attend_checked(const Model& model, std::size_t sequence);

}  // namespace core::attention
