#pragma once

#include <string>

#include "core/check/agreement.hpp"
#include "core/check/computed.hpp"

namespace core::check {

/// Where a tensor differs from its stage of the model and in what, as pattern_of() says it; of the sequence
/// in which it is farthest off.
std::string pattern_in(const Theirs& theirs, const Reading& reading, const Computed& right,
                       const Tolerance& tolerance);

}  // namespace core::check
