#pragma once

#include <cstddef>
#include <vector>

#include "app/ui/frame.hpp"

namespace app::panels {

/// Returns the heads whose lines are displayed in the token view.
std::vector<std::size_t> heads_with_lines(const Frame& frame);

/// Weights of the hovered or pinned query for every key, summed over the heads with lines.
struct WeightSums {
  std::vector<double> sums;  ///< n_keys; NaN where a head's row is NaN
  double top = 1;            ///< value at the end of the bars
};

/// Draws lines from every query to the keys it attends to, in the colors of the heads.
void draw_tokens(const Frame& frame);

}  // namespace app::panels
