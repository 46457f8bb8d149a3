#pragma once

#include <cstddef>

#include "app/ui/frame.hpp"

namespace app::panels {

/// Where the pictures of heads stand: equal tiles, names beside the first column and above the first row
/// alone.
struct Tiling {
  std::size_t columns = 1;
  int width = 0, height_of_one = 0;  ///< of one picture, in pixels
  bool names = true;                 ///< tokens and not only their indices
  float labels = 0, head = 0;        ///< room left of the first column and above the first row
  float gap = 0, row_gap = 0;        ///< between columns, and between rows
  float foot = 0;                    ///< below every picture
  float height = 0;                  ///< of all rows

  /// Top left of a picture, relative to all of them.
  ImVec2 picture(std::size_t place) const;
};

/// As large as all of them can be seen; where they would become too small for that, as small as they may be,
/// and it scrolls.
Tiling tile_heads(const Frame& frame, const core::attention::StageInfo& stage, std::size_t n_pictures,
                  ImVec2 room);

}  // namespace app::panels
