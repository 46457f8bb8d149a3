// Which colours a heatmap's numbers have, and which of them are hidden or dropped.
#include <algorithm>
#include <cmath>

#include "app/widgets/heatmap_drawn.hpp"

namespace app::widgets {

bool is_ready(const Frame& frame, Stage stage, std::size_t head) {
  return !frame.source || frame.source->is_ready(stage, head);
}

const Extent& extent_of_stage(const Frame& frame, Stage stage, std::size_t head) {
  return is_ready(frame, stage, head) ? frame.extents.of(frame.trace, frame.version, stage, head)
                                      : frame.extents.last(stage, head);
}

namespace {

using core::attention::Colouring;
using core::attention::StageInfo;

bool is_weight(Stage stage) {
  return stage == Stage::weights || stage == Stage::dropped_weights || stage == Stage::zeroed_weights;
}

/// The extent of all numbers that set the range of one matrix.
Extent extent_in_force(const Frame& frame, const StageInfo& stage, std::size_t head) {
  const RangeRule rule = frame.view.colours.range;
  Extent all;
  const auto add = [&](const Extent& e) {
    all.smallest = std::min(all.smallest, e.smallest);
    all.largest = std::max(all.largest, e.largest);
    if (e.least > 0) all.least = all.least > 0 ? std::min(all.least, e.least) : e.least;
  };
  for (const StageInfo& other : core::attention::stages()) {
    const bool counts = other.stage == stage.stage ||
                        (rule == RangeRule::all_heads && other.colouring == stage.colouring);
    if (!counts || !other.present(frame.model)) continue;
    const bool one_head = !other.per_head || rule == RangeRule::matrix || rule == RangeRule::typed;
    const std::size_t first = one_head && other.per_head ? head : 0;
    for (std::size_t h = first; h < (one_head ? first + 1 : frame.trace.heads.size()); ++h)
      add(extent_of_stage(frame, other.stage, h));
  }
  return all;
}

/// Where a logarithmic range begins: a power of ten not above the smallest number, four decades at most.
double least_of(const Ends& ends, double smallest) {
  constexpr double decades = 1e-4;
  if (ends.low > 0) return ends.low;
  if (ends.high < 0) return -ends.high;
  const double largest = std::max(-ends.low, ends.high);
  if (!(largest > 0)) return 0;
  const double least = std::max(smallest, largest * decades);
  return std::min(std::pow(10, std::floor(std::log10(least))), largest / 10);
}

/// The ends that follow the numbers or were typed.
Ends free_ends(const Frame& frame, Stage stage, std::size_t head) {
  const StageInfo& row = core::attention::info(stage);
  const ColourChoice& chosen = frame.view.colours;
  const double top = core::attention::top_of_range(frame.model, stage);
  if (row.colouring == Colouring::mask) return {0, top};
  const bool is_signed = row.colouring == Colouring::signed_values;
  const bool typed = chosen.range == RangeRule::typed;
  if (!is_signed && !chosen.logarithmic) return typed ? chosen.typed_weights : Ends{0, top};
  const Extent extent = extent_in_force(frame, row, head);
  const double most = std::max(-extent.smallest, extent.largest);
  Ends ends = is_signed ? Ends{-most, most} : Ends{0, top};
  if (typed) ends = is_signed ? chosen.typed_values : chosen.typed_weights;
  if (chosen.logarithmic) ends.least = least_of(ends, extent.least);
  return ends;
}

}  // namespace

bool has_cells_of_stage(const Heatmap& map) { return !map.other || map.other->of_stage; }

bool marks_hidden(const Heatmap& map) {
  return map.other ? map.other->of_tokens || map.other->visible : is_weight(map.stage);
}

const arma::mat& visible_cells(const Frame& frame, const Heatmap& map) {
  if (map.other && map.other->visible) return *map.other->visible;
  return frame.source ? frame.source->visible() : *frame.trace.mask;
}

bool marks_dropped(const Heatmap& map) {
  return !map.other && (map.stage == Stage::dropout_mask || map.stage == Stage::dropped_weights);
}

const arma::mat* kept_cells(const Frame& frame, const Heatmap& map) {
  if (map.other) return map.other->kept;
  return marks_dropped(map) ? &*frame.trace.heads[map.head].dropout_mask : nullptr;
}

Colouring colouring_of(const Heatmap& map) {
  return map.other && map.other->colouring ? *map.other->colouring
                                           : core::attention::info(map.stage).colouring;
}

Ends colour_ends(const Frame& frame, Stage stage, std::size_t head) {
  const auto& locked = frame.view.colours.locked;
  const std::size_t of = core::attention::info(stage).per_head ? head : 0;
  if (locked)
    if (const auto it = locked->find({stage, of}); it != locked->end()) return it->second;
  return free_ends(frame, stage, head);
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
  if (!map.other) return extent_of_stage(frame, map.stage, map.head);
  return map.other->extent ? *map.other->extent : extent_of(*map.other->numbers);
}

render::Picture picture_of(const Frame& frame, const Heatmap& map, const Drawn& d,
                           const ColourScale& scale) {
  render::Picture picture;
  picture.place = map.place;
  if (frame.source && !map.other) picture.rows = frame.source->rows(map.stage, map.head);
  if (marks_hidden(map)) picture.visible = &visible_cells(frame, map);
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
  picture.pending = !map.other && ((!render::has_rows(picture) && !is_ready(frame, map.stage, map.head)) ||
                                   (marks_dropped(map) && !is_ready(frame, Stage::dropout_mask, map.head)));
  if (picture.pending) {
    picture.rows = {};
    return picture;
  }
  picture.kept = kept_cells(frame, map);
  if (render::has_rows(picture)) {
    picture.change = frame.source->change(map.head);
    picture.flags_version = frame.source->mask_version();
  } else {
    picture.numbers = &static_cast<const arma::mat&>(d.numbers);
  }
  return picture;
}

}  // namespace app::widgets
