#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// A, B and their difference beside each other, a stage below the other; without an A, the ways to come to
/// one.
void draw_compare(const Frame& frame);

}  // namespace app::panels
