#include "app/ui/panels/compare/compare_layout.hpp"

#include <algorithm>
#include <cmath>

namespace app::panels {
namespace {

// At scale 1.
constexpr float smallest_whole_cell = 4, widest_cell = 64, highest_cell = 26, narrowest_number_cell = 27,
                most_named = 24;

/// As many pixels as cells of one whole width give, or all of the room when cells are too small to show a
/// rest.
int cells_width(const Metrics& m, float room, std::size_t n) {
  const float pitch = room / static_cast<float>(n);
  if (pitch < m.px(smallest_whole_cell)) return std::max(1, static_cast<int>(room));
  return static_cast<int>(n) * static_cast<int>(std::min(std::floor(pitch), m.px(widest_cell)));
}

}  // namespace

int CompareLayout::features(const Metrics& metrics, std::size_t n_columns) const {
  return cells_width(metrics, column, n_columns);
}

CompareLayout lay_out_comparison(const Metrics& m, std::size_t n_tokens, float width) {
  CompareLayout l;
  l.width = width;
  l.label_a = m.px(m.compact ? 60 : 76);
  l.label = m.px(n_tokens > 100 ? 34 : 22);
  l.gap = m.px(m.compact ? 16 : 26);
  l.column = std::max(m.px(60), std::floor((width - l.label_a - 2 * l.label - 2 * l.gap) / 3));
  l.square = cells_width(m, l.column, n_tokens);
  const float cell = static_cast<float>(l.square) / static_cast<float>(n_tokens);
  const float high = cell >= m.px(narrowest_number_cell)
                         ? std::min(std::round(cell * 24 / 39), m.px(highest_cell))
                         : std::min(cell, m.px(highest_cell));
  l.height = std::max(1, static_cast<int>(std::round(high * static_cast<float>(n_tokens))));
  l.column_tokens = static_cast<float>(n_tokens) <= most_named;
  return l;
}

}  // namespace app::panels
