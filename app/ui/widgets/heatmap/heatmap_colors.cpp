// Which colors a heatmap's numbers have, and which of them are hidden or dropped.
#include "app/session/picture_source.hpp"
#include "app/ui/widgets/heatmap/heatmap_drawn.hpp"

namespace app::widgets {

bool is_ready(const Frame& frame, Stage stage, std::size_t head) {
  return !frame.work.source || frame.work.source->is_ready(stage, head);
}

const Extent& extent_of_stage(const Frame& frame, Stage stage, std::size_t head) {
  if (!is_ready(frame, stage, head)) return frame.work.extents.last(stage, head);
  const Extent* known = frame.work.source ? frame.work.source->extent(stage, head) : nullptr;
  return known ? frame.work.extents.remember(frame.shown.version, stage, head, *known)
               : frame.work.extents.of(frame.shown.trace, frame.shown.version, stage, head);
}

const Beyond* cells_outside(const Frame& frame, Stage stage, std::size_t head, const Range& range) {
  return !frame.work.source || frame.work.source->is_small(stage, head)
             ? &frame.work.extents.outside(frame.shown.trace, frame.shown.version, stage, head, range)
             : frame.work.source->outside(stage, head, range);
}

namespace {

using core::attention::Coloring;
using core::attention::StageInfo;

bool is_weight(Stage stage) {
  return stage == Stage::weights || stage == Stage::dropped_weights || stage == Stage::zeroed_weights;
}

}  // namespace

bool has_cells_of_stage(const Heatmap& map) {
  return !map.other || map.other->of_stage;
}

bool marks_hidden(const Heatmap& map) {
  return map.other ? map.other->of_tokens || map.other->visible : is_weight(map.stage);
}

const arma::mat* visible_cells(const Frame& frame, const Heatmap& map) {
  if (!marks_hidden(map)) return nullptr;
  if (map.other && map.other->visible) return map.other->visible;
  return frame.work.source ? frame.work.source->visible() : &*frame.shown.trace.mask;
}

bool is_hidden(const Frame& frame, const Heatmap& map, std::size_t row, std::size_t column) {
  if (!marks_hidden(map) || shown_numbers(frame, map)(row, column) != 0) return false;
  return map.other && map.other->visible ? (*map.other->visible)(row, column) == 0
                                         : frame.shown.trace.mask(row, column) == 0;
}

bool is_dropped(const Frame& frame, const Heatmap& map, std::size_t row, std::size_t column) {
  if (map.other) return map.other->kept && (*map.other->kept)(row, column) == 0;
  return marks_dropped(map) && frame.shown.trace.heads[map.head].dropout_mask(row, column) == 0;
}

bool marks_dropped(const Heatmap& map) {
  return !map.other && (map.stage == Stage::dropout_mask || map.stage == Stage::dropped_weights);
}

const arma::mat* kept_cells(const Frame& frame, const Heatmap& map) {
  if (map.other) return map.other->kept;
  return marks_dropped(map) ? &*frame.shown.trace.heads[map.head].dropout_mask : nullptr;
}

Coloring coloring_of(const Heatmap& map) {
  return map.other && map.other->coloring ? *map.other->coloring : core::attention::info(map.stage).coloring;
}

Ends color_ends(const Frame& frame, Stage stage, std::size_t head) {
  const auto extent = [&](Stage of, std::size_t h) {
    // While a number is dragged the colors stay, so that a cell that changes is seen to.
    if (frame.work.changes && frame.work.changes->is_under_way())
      if (const auto* before = numbers_before(frame, of, h)) return extent_of(*before);
    return extent_of_stage(frame, of, h);
  };
  return app::color_ends(frame.shown.look.colors, frame.shown.model, extent, stage, head);
}

std::map<std::pair<Stage, std::size_t>, Ends> all_color_ends(const Frame& frame) {
  std::map<std::pair<Stage, std::size_t>, Ends> ends;
  for (const StageInfo& stage : core::attention::stages()) {
    if (!stage.present(frame.shown.model)) continue;
    for (std::size_t h = 0; h < (stage.per_head ? frame.shown.trace.heads.size() : 1); ++h)
      ends[{stage.stage, h}] = color_ends(frame, stage.stage, h);
  }
  return ends;
}

ColorScale scale_of(const Frame& frame, const Heatmap& map) {
  const Ends ends = map.other ? map.other->ends : color_ends(frame, map.stage, map.head);
  return {chosen_map(frame.shown.look.colors, coloring_of(map)), frame.palette.dark, ends};
}

Extent shown_extent(const Frame& frame, const Heatmap& map) {
  if (!map.other) return extent_of_stage(frame, map.stage, map.head);
  return map.other->extent ? *map.other->extent : extent_of(*map.other->numbers);
}

render::Picture picture_of(const Frame& frame, const Heatmap& map, const Drawn& d, const ColorScale& scale) {
  render::Picture picture;
  picture.place = map.place;
  if (frame.work.source && !map.other) picture.cells.rows = frame.work.source->rows(map.stage, map.head);
  picture.cells.visible = visible_cells(frame, map);
  picture.cells.version = map.other ? map.other->version : frame.shown.version;
  picture.map = scale.map;
  picture.dark = scale.dark;
  picture.low = scale.ends.low, picture.high = scale.ends.high;
  picture.least = scale.is_logarithmic() ? scale.ends.least : 0;
  picture.dots = !cell_digits(frame, map, d).font;
  picture.width = map.width, picture.height = map.height;
  picture.part = {d.part.left, d.part.top, d.part.right, d.part.bottom};
  picture.cross = d.cross;
  picture.phase = static_cast<int>(d.corner.x + d.corner.y) % 6;
  picture.pending = (marks_hidden(map) && !picture.cells.visible) ||
                    (!map.other && ((!render::has_rows(picture) && !is_ready(frame, map.stage, map.head)) ||
                                    (marks_dropped(map) && !is_ready(frame, Stage::dropout_mask, map.head))));
  if (picture.pending) {
    picture.cells.rows = {};
    return picture;
  }
  picture.cells.kept = kept_cells(frame, map);
  if (render::has_rows(picture)) {
    picture.cells.change = frame.work.source->change(map.head);
    picture.cells.flags_version = frame.work.source->mask_version();
  } else {
    picture.cells.numbers = &static_cast<const arma::mat&>(d.numbers);
  }
  return picture;
}

}  // namespace app::widgets
