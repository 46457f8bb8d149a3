#include "app/ui/panels/layers/layers_tiling.hpp"

#include <algorithm>
#include <cmath>

namespace app::panels {
namespace {

constexpr float smallest_map = 60, largest_map = 320, largest_cell = 26;
constexpr float cell_with_tokens = 12, cell_with_gap = 8, widest_gap = 28;

}  // namespace

LayersTiling tile_layers(const Metrics& metrics, ImVec2 room, std::size_t n_layers, std::size_t n_heads,
                         std::size_t n_numbers) {
  const auto columns = static_cast<float>(n_heads), rows = static_cast<float>(n_layers),
             cells = static_cast<float>(n_numbers);
  // As much as fits, in whole cells where these are large enough to have gaps.
  const auto fitted = [&](LayersTiling t, float least_cell) {
    const float across = (room.x - t.labels - t.row_tokens + t.gap) / columns - t.gap,
                down = (room.y - t.top) / rows - (t.pitch() - t.map);
    const float most = std::min({across, down, metrics.px(largest_map), cells * metrics.px(largest_cell)});
    const float cell = std::floor(std::max(0.0f, most) / cells);
    const bool has_gaps = cell >= metrics.px(cell_with_gap);
    t.map = has_gaps ? cell * cells : std::floor(most);
    return std::pair(t, t.map >= metrics.px(smallest_map) && t.map >= metrics.px(least_cell) * cells);
  };
  // What whole cells leave over goes between the columns.
  const auto spread = [&](LayersTiling t) {
    const float over = std::floor((room.x - t.width(n_heads)) / std::max(1.0f, columns - 1));
    t.gap = std::max(t.gap, std::min(metrics.px(widest_gap), t.gap + over));
    return t;
  };
  LayersTiling t;
  t.labels = metrics.px(100);
  t.header = metrics.px(24), t.bar_gap = metrics.px(6), t.bar = metrics.px(4), t.foot = metrics.px(10);
  for (const float gap : {widest_gap, 20.0f, 12.0f}) {
    t.gap = metrics.px(gap), t.row_tokens = metrics.px(76);
    if (const auto [found, fits] = fitted(t, cell_with_tokens); fits) return spread(found);
  }
  t.row_tokens = 0;
  for (const float gap : {widest_gap, 16.0f, 8.0f}) {
    t.gap = metrics.px(gap);
    if (const auto [found, fits] = fitted(t, cell_with_gap); fits) return spread(found);
  }
  t.gap = metrics.px(8);
  if (const auto [found, fits] = fitted(t, 0); fits && found.map >= metrics.px(96)) return spread(found);
  t.header = 0, t.top = metrics.px(20), t.bar_gap = metrics.px(2), t.bar = metrics.px(3),
  t.foot = metrics.px(3);
  t.gap = metrics.px(4);
  auto [found, fits] = fitted(t, 0);
  if (!fits) {
    found.map = metrics.px(smallest_map);
    return found;
  }
  return spread(found);
}

}  // namespace app::panels
