#pragma once

#include <vector>

#include "core/check/agreement.hpp"

namespace core::check {

/// Whether all tensors are what arithmetic of a coarse precision makes of the exact model.
///
/// No library rounds in the same places as another, so bits are not compared. Each tensor must lie about as
/// far from the exact stage as our own coarse stage does, and there must be evidence that this distance is
/// that of rounding: numbers of a finer type that are all numbers of the coarse one, or errors that are much
/// like ours. Of models that are computed for a sample only the distance is asked, and less strictly.
bool is_rounding(const std::vector<Theirs>& theirs, const Computed& exact, const Computed& coarse,
                 const Tolerance& tolerance);

}  // namespace core::check
