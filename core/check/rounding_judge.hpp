#pragma once

#include <vector>

#include "core/check/agreement.hpp"

namespace core::check {

/// Whether all tensors are what arithmetic of a coarse precision makes of the exact model.
///
/// No library rounds in the same places as another, so bits are not compared. Each tensor must lie about as
/// far from the exact stage as our own coarse stage does, and there must be evidence that this distance is
/// that of rounding: the numbers are those of the coarse type, or they lie nearer to our coarse stage than to
/// the exact one.
bool is_rounding(const std::vector<Theirs>& theirs, const Computed& exact, const Computed& coarse,
                 const Tolerance& tolerance);

}  // namespace core::check
