#include "app/ui/panels/present/flight_paths.hpp"

#include <algorithm>
#include <cmath>

#include "app/ui/panels/present/shown_map.hpp"

namespace app::panels {
namespace {

ImVec2 bezier(ImVec2 a, ImVec2 b, ImVec2 c, ImVec2 d, float t) {
  const float s = 1 - t;
  const float p = s * s * s, q = 3 * s * s * t, r = 3 * s * t * t, u = t * t * t;
  return {p * a.x + q * b.x + r * c.x + u * d.x, p * a.y + q * b.y + r * c.y + u * d.y};
}

}  // namespace

ImVec2 FlightPath::at(float t) const {
  const auto& p = points;
  return t < 0.5f ? bezier(p[0], p[1], p[2], p[3], 2 * t) : bezier(p[3], p[4], p[5], p[6], 2 * t - 1);
}

std::optional<CellPlace> place_of(const Frame& frame, const core::explain::Place& place) {
  const Stage* stage = std::get_if<Stage>(&place.source);
  if (!stage) return std::nullopt;
  const core::attention::StageInfo& info = core::attention::info(*stage);
  if (info.per_head && core::attention::matrix_of_head(frame.shown.model, *stage, place.head) !=
                           core::attention::matrix_of_head(frame.shown.model, *stage, frame.shown.look.head))
    return std::nullopt;
  const auto map = shown_map(frame, info);
  if (!map) return std::nullopt;
  const auto row = static_cast<double>(place.row), column = static_cast<double>(place.column);
  const CellWindow& part = map->part;
  if (row + 0.5 < part.top || row + 0.5 > part.bottom || column + 0.5 < part.left ||
      column + 0.5 > part.right)
    return std::nullopt;
  return CellPlace{{map->x(column), map->y(row)}, {map->x(column + 1), map->y(row + 1)}};
}

FlightPath path_between(const Frame& frame, const CellPlace& from, const CellPlace& to, std::size_t k,
                        std::size_t n) {
  const auto px = [&](float length) { return frame.metrics.px(length); };
  const float share = n > 1 ? static_cast<float>(k) / static_cast<float>(n - 1) : 0;
  const ImVec2 start{(from.min.x + from.max.x) / 2, from.min.y};
  const ImVec2 end{to.min.x + std::min(px(6), (to.max.x - to.min.x) * 0.2f),
                   to.min.y + std::min(px(5), (to.max.y - to.min.y) * 0.3f)};
  // Lines come in at the gap above the target's row, whichever side they come from.
  const bool from_left = start.x <= end.x;
  const float side = from_left ? -1.0f : 1.0f;
  const float far = std::abs(end.x - start.x);
  const float lane = to.min.y - px(1);
  const ImVec2 meet{end.x + side * std::clamp(far * 0.45f, px(8), std::max(px(8), far - px(12))), lane};
  // Up by a part of the cell, not over the labels above its map, before it goes to the lane.
  const float lift = (from.max.y - from.min.y) * (0.25f + 0.25f * (1 - share));
  const float run = std::max(px(8), std::abs(meet.x - start.x) * 0.2f);
  const ImVec2 up{start.x, start.y - lift};
  const ImVec2 before{meet.x + side * run, meet.y};
  const float last = std::abs(end.x - meet.x);
  const ImVec2 after{meet.x - side * last * 0.45f, meet.y};
  const ImVec2 into{end.x + side * last * 0.3f, end.y - px(2)};
  return {{start, up, before, meet, after, into, end}};
}

}  // namespace app::panels
