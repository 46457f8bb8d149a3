#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// A picture on the screen and what it shows.
struct PictureFrame {
  ImVec2 min, max;
  CellWindow part;
};

/// The row and the column of the pinned, else the hovered cell as lengths, on the same pixels as the picture:
/// the column right of it and room.x wide, the row below and room.y high, both from the point `at` on; where
/// they meet, the whole map with the picture's part.
void draw_profiles(const Frame& frame, const core::attention::StageInfo& stage,
                   const core::attention::StageMatrix& numbers, const PictureFrame& picture, ImVec2 at,
                   ImVec2 room);

}  // namespace app::panels
