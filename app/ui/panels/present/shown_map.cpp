#include "app/ui/panels/present/shown_map.hpp"

#include <array>
#include <cmath>

#include "app/session/navigation.hpp"
#include "core/graph/stages.hpp"

namespace app::panels {
namespace {

/// Where maps stand, and whether zooming leaves them whole.
struct MapPlace {
  const char* before_name;
  bool shows_all;
};
constexpr std::array map_places{MapPlace{"present/", true}, MapPlace{"present/from/", true},
                                MapPlace{"large/", false}, MapPlace{"strip/", false}};

float between(float low, float high, double at, double first, double end) {
  return std::round(low + static_cast<float>((at - first) / (end - first)) * (high - low));
}

}  // namespace

float ShownMap::x(double column) const {
  return between(rect.min.x, rect.max.x, column, part.left, part.right);
}

float ShownMap::y(double row) const {
  return between(rect.min.y, rect.max.y, row, part.top, part.bottom);
}

std::optional<ShownMap> shown_map(const Frame& frame, const core::attention::StageInfo& stage) {
  const auto size = core::attention::shape_of(frame.shown.model, stage.stage);
  const Shape shape{size.n_rows, size.n_cols};
  for (const MapPlace& place : map_places)
    if (const auto rect = frame.landmarks.find(std::string(place.before_name) + stage.name))
      return ShownMap{*rect, place.shows_all ? whole(shape) : shown_part(frame.shown.look, shape)};
  return std::nullopt;
}

}  // namespace app::panels
