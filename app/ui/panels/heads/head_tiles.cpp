#include "app/ui/panels/heads/head_tiles.hpp"

#include <algorithm>
#include <cmath>

#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"

namespace app::panels {
namespace {

using core::attention::Columns;
using core::attention::StageInfo;

// At scale 1.
constexpr float smallest_picture = 64, foot_height = 34, most_between_rows = 24, widest_cell = 110,
                highest_cell = 76;
constexpr std::size_t most_named = 64;  // tokens

/// As much of a length as whole cells of at most that size take; all of it when they are smaller than a
/// pixel.
int whole_cells(float room, std::size_t count, float largest) {
  const auto n = static_cast<float>(count);
  if (room < n) return std::max(1, static_cast<int>(room));
  return static_cast<int>(count) * static_cast<int>(std::min(std::floor(room / n), largest));
}

/// One picture in that room: cells of tokens are as wide as high, or wider where they can hold numbers.
void fit_picture(const Frame& frame, const StageInfo& stage, const core::attention::StageMatrix& numbers,
                 float width, float height, Tiling& t) {
  const Metrics& m = frame.metrics;
  float wide = std::min(width / static_cast<float>(numbers.n_cols()), m.px(widest_cell));
  float high = std::min(height / static_cast<float>(numbers.n_rows()), m.px(highest_cell));
  if (stage.columns == Columns::tokens) {
    const int digits = widgets::needs_of_stage(frame, stage.stage, 0).characters(core::text::least_decimals);
    const bool holds_numbers = std::floor(wide) >= widgets::cell_width_for(frame, digits) && high >= m.px(16);
    high = std::min(high, wide);
    wide = std::min(wide, holds_numbers ? std::max(2 * high, widgets::cell_width_for(frame, digits)) : high);
  }
  t.width = whole_cells(wide * static_cast<float>(numbers.n_cols()), numbers.n_cols(), m.px(widest_cell));
  t.height_of_one =
      whole_cells(high * static_cast<float>(numbers.n_rows()), numbers.n_rows(), m.px(highest_cell));
}

float label_width(const Frame& frame, const StageInfo& stage, bool names) {
  const core::attention::Sequence& sequence = frame.shown.model.sequences[frame.shown.look.sequence];
  const auto& tokens = row_tokens(stage, sequence);
  const float index =
      widgets::text_width(frame.fonts.mono12, std::to_string(std::max<std::size_t>(1, tokens.size()) - 1)) +
      frame.metrics.px(8);
  if (!names) return index;
  float widest = 0;
  for (const std::string& token : tokens)
    widest = std::max(widest, widgets::text_width(frame.fonts.sans13, token));
  return index + frame.metrics.px(6) + std::min(std::ceil(widest), frame.metrics.px(76));
}

/// The room above the first row.
float head_height(const Frame& frame, const StageInfo& stage, const Tiling& t) {
  widgets::Heatmap map;
  map.stage = stage.stage;
  map.width = t.width;
  map.columns = t.names ? widgets::ColumnLabels::tokens : widgets::ColumnLabels::indices;
  return widgets::column_label_height(frame, map);
}

}  // namespace

ImVec2 Tiling::picture(std::size_t place) const {
  const auto column = static_cast<float>(place % columns), row = static_cast<float>(place / columns);
  return {labels + column * (static_cast<float>(width) + gap),
          head + row * (static_cast<float>(height_of_one) + foot + row_gap)};
}

Tiling tile_heads(const Frame& frame, const StageInfo& stage, std::size_t n_pictures, ImVec2 room) {
  const Metrics& m = frame.metrics;
  const core::attention::StageMatrix& numbers = stage.matrix(frame.shown.trace, 0);
  const float least = m.px(smallest_picture);
  Tiling best;
  float best_rank = -1;
  for (std::size_t columns = n_pictures > 1 ? 2 : 1; columns <= std::max<std::size_t>(1, n_pictures);
       ++columns) {
    Tiling t;
    t.columns = columns;
    t.names = numbers.n_rows() <= most_named;
    t.labels = label_width(frame, stage, t.names);
    t.gap = m.px(columns > 8 ? 8 : columns > 4 ? 14 : 20);
    t.row_gap = t.gap;
    t.foot = m.px(foot_height);
    const auto across = static_cast<float>(columns);
    const float rows = std::ceil(static_cast<float>(n_pictures) / across);
    const float width = std::floor((room.x - t.labels - t.gap * (across - 1)) / across);
    if (width < least && best_rank >= 0) break;
    t.width = std::max(1, static_cast<int>(width));
    t.head = head_height(frame, stage, t);
    const float height = std::floor((room.y - t.head - rows * t.foot - (rows - 1) * t.gap) / rows);
    const bool scrolls = height < least;
    fit_picture(frame, stage, numbers, std::max(width, 1.0f), scrolls ? std::max(width, least) : height, t);
    t.head = head_height(frame, stage, t);
    t.height = t.head + rows * (static_cast<float>(t.height_of_one) + t.foot) + (rows - 1) * t.gap;
    // What can be seen at once comes first, as large as it can be; else as much of it as can be.
    const float area = static_cast<float>(t.width) * static_cast<float>(t.height_of_one);
    const float rank = scrolls ? 1 / t.height : 1 + area;
    if (rank > best_rank * 1.001f) best = t, best_rank = rank;
  }
  // What whole cells leave over goes between the rows, and as much above what is said below all.
  const std::size_t n_rows = (n_pictures + best.columns - 1) / best.columns;
  const float over =
      std::floor((room.y - best.height) / static_cast<float>(std::max<std::size_t>(1, n_rows)));
  if (over > 0) {
    const float more = std::min(over, m.px(most_between_rows));
    best.row_gap += more, best.height += more * static_cast<float>(n_rows);
  }
  return best;
}

}  // namespace app::panels
