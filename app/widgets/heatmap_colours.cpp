// Which colours a heatmap's numbers have, and which of them are hidden or dropped.
#include "app/colour_ends.hpp"
#include "app/widgets/heatmap_drawn.hpp"

namespace app::widgets {
namespace {

using core::attention::Colouring;
using core::attention::StageInfo;

bool is_weight(Stage stage) {
  return stage == Stage::weights || stage == Stage::dropped_weights || stage == Stage::zeroed_weights;
}

}  // namespace

bool has_cells_of_stage(const Heatmap& map) { return !map.other || map.other->of_stage; }

bool marks_hidden(const Heatmap& map) {
  return map.other ? map.other->of_tokens || map.other->visible : is_weight(map.stage);
}

const arma::mat& visible_cells(const Frame& frame, const Heatmap& map) {
  return map.other && map.other->visible ? *map.other->visible : *frame.trace.mask;
}

const arma::mat* kept_cells(const Frame& frame, const Heatmap& map) {
  if (map.other) return map.other->kept;
  const bool marked = map.stage == Stage::dropout_mask || map.stage == Stage::dropped_weights;
  return marked ? &*frame.trace.heads[map.head].dropout_mask : nullptr;
}

Colouring colouring_of(const Heatmap& map) {
  return map.other && map.other->colouring ? *map.other->colouring
                                           : core::attention::info(map.stage).colouring;
}

Ends colour_ends(const Frame& frame, Stage stage, std::size_t head) {
  const auto extent = [&](Stage of, std::size_t h) { return frame.extents.of(frame.trace, frame.version, of, h); };
  return app::colour_ends(frame.view.colours, frame.model, extent, stage, head);
}

std::map<std::pair<Stage, std::size_t>, Ends> all_colour_ends(const Frame& frame) {
  std::map<std::pair<Stage, std::size_t>, Ends> ends;
  for (const StageInfo& stage : core::attention::stages()) {
    if (!stage.present(frame.model)) continue;
    for (std::size_t h = 0; h < (stage.per_head ? frame.trace.heads.size() : 1); ++h)
      ends[{stage.stage, h}] = colour_ends(frame, stage.stage, h);
  }
  return ends;
}

ColourScale scale_of(const Frame& frame, const Heatmap& map) {
  const Ends ends = map.other ? map.other->ends : colour_ends(frame, map.stage, map.head);
  return {chosen_map(frame.view, colouring_of(map)), frame.palette.dark, ends};
}

Extent shown_extent(const Frame& frame, const Heatmap& map) {
  if (!map.other) return frame.extents.of(frame.trace, frame.version, map.stage, map.head);
  return map.other->extent ? *map.other->extent : extent_of(*map.other->numbers);
}

render::Picture picture_of(const Frame& frame, const Heatmap& map, const Drawn& d,
                           const ColourScale& scale) {
  render::Picture picture;
  picture.place = map.place;
  if (frame.source && !map.other) picture.rows = frame.source->rows(map.stage, map.head);
  if (marks_hidden(map)) picture.visible = &visible_cells(frame, map);
  picture.kept = kept_cells(frame, map);
  picture.version = map.other ? map.other->version : frame.version;
  picture.map = scale.map;
  picture.dark = scale.dark;
  picture.low = scale.ends.low, picture.high = scale.ends.high;
  picture.least = scale.is_logarithmic() ? scale.ends.least : 0;
  picture.dots = numbers_strength(frame, map, d) == 0;
  picture.width = map.width, picture.height = map.height;
  picture.left = d.part.left, picture.top = d.part.top;
  picture.right = d.part.right, picture.bottom = d.part.bottom;
  picture.cross = d.cross;
  picture.phase = static_cast<int>(d.corner.x + d.corner.y) % 6;
  if (render::has_rows(picture)) {
    picture.change = frame.source->change(map.head);
    picture.flags_version = frame.source->mask_version();
  } else {
    picture.numbers = &static_cast<const arma::mat&>(d.numbers);
  }
  return picture;
}

}  // namespace app::widgets
