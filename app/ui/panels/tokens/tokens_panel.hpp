#pragma once

#include <cstddef>
#include <vector>

#include "app/ui/frame.hpp"

namespace app::panels {

/// The heads whose lines are shown in the token view.
std::vector<std::size_t> heads_with_lines(const Frame& frame);

/// What the query of interest takes from every key, a sum over the heads with lines.
struct Takes {
  std::vector<double> sums;  ///< n_keys; NaN where a head's row is
  double top = 1;            ///< the end of the bars
};

/// Lines from every query to the keys it listens to, in the colors of the heads.
void draw_tokens(const Frame& frame);

}  // namespace app::panels
