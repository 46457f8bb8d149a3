#pragma once

#include <cstddef>
#include <vector>

#include "app/ui/frame.hpp"

namespace app::panels {

/// The heads whose lines are shown in the token view.
std::vector<std::size_t> heads_with_lines(const Frame& frame);

/// A switch for every head, and for all of them; scrolls when they are very many.
void draw_token_chips(const Frame& frame, float width);

/// Where the rows and the columns of the token view lie on the screen.
struct TokenLayout {
  float queries = 0, lines = 0, keys = 0, takes = 0;  ///< left edges; lines run from lines to keys
  float query_width = 0, key_width = 0, bar_width = 0, right = 0;
  float top = 0, pitch = 1, box = 1;  ///< of row 0, between rows, and the height of a token's box
  std::size_t first = 0, end = 0;     ///< rows that can be seen

  float middle(std::size_t row) const { return top + (static_cast<float>(row) + 0.5f) * pitch; }
};

/// What the query of interest takes from every key, a sum over the heads with lines.
struct Takes {
  std::vector<double> sums;  ///< n_keys; NaN where a head's row is
  double top = 1;            ///< the end of the bars
};

/// Nothing without a query of interest.
Takes takes_of(const Frame& frame, const std::vector<std::size_t>& heads);

/// The queries at the left, each to hover and to press, and the keys at the right.
void draw_token_boxes(const Frame& frame, const TokenLayout& layout, const std::vector<std::size_t>& heads);

void draw_token_lines(const Frame& frame, const TokenLayout& layout, const TokenLines& lines,
                      const std::vector<std::size_t>& heads);

/// The sums as bars, a part for each head.
void draw_takes(const Frame& frame, const TokenLayout& layout, const Takes& takes,
                const std::vector<std::size_t>& heads);

/// Lines from every query to the keys it listens to, in the colors of the heads.
void draw_tokens(const Frame& frame);

}  // namespace app::panels
