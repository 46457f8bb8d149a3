#pragma once

#include <span>

#include "core/graph/bugs.hpp"

namespace core::bugs {

/// Returns the bugs of a backward, which no menu offers: the edited graph has the right stages, and other
/// gradients.
std::span<const Bug> backward_bugs();

}  // namespace core::bugs
