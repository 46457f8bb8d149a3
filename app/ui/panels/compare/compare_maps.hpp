#pragma once

#include "app/ui/frame.hpp"
#include "app/ui/panels/compare/compare_layout.hpp"

namespace app::panels {

/// One stage of A, of B and their difference as pictures beside each other, linked cell by cell; returns how
/// high they are.
///
/// swapped: A stands in B's place too.
float draw_compared_maps(const Frame& frame, const CompareLayout& layout, const ComparedStage& stage,
                         ImVec2 at, bool swapped);

}  // namespace app::panels
