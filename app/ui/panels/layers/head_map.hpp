#pragma once

#include "app/ui/frame.hpp"
#include "app/ui/panels/layers/layers_tiling.hpp"

namespace app::panels {

/// One head of one layer at the top left corner of its map: map, name, role and bar, as far as there is room.
void draw_head_map(const Frame& frame, const LayersTiling& tiling, std::size_t layer, std::size_t head,
                   ImVec2 corner);

}  // namespace app::panels
