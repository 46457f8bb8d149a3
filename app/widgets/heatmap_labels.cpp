// The names and indices around a heatmap.
#include <algorithm>

#include "app/widgets/drawing.hpp"
#include "app/widgets/heatmap_drawn.hpp"

namespace app::widgets {
namespace {

using core::attention::Columns;

/// Whether a label stands at k: every step-th, and the chosen one, which its neighbours give way to.
bool has_label(std::size_t k, std::size_t step, std::optional<std::size_t> chosen) {
  if (chosen == k) return true;
  if (k % step != 0) return false;
  if (!chosen || step == 1) return true;
  return (k > *chosen ? k - *chosen : *chosen - k) >= step;
}

/// Words above the columns in place of indices.
void draw_column_names(const Frame& frame, const Heatmap& map, const Drawn& d) {
  const std::size_t step = label_step(d.cell_width, frame.metrics.px(34));
  for (std::size_t j = 0; j < d.numbers.n_cols; j += step) {
    if (!d.shows_column(j)) continue;
    draw_text(frame.fonts.sans12, {d.x(static_cast<double>(j) + 0.5), d.corner.y - frame.metrics.px(9)},
              Align::middle, packed(frame.palette.dim),
              shortened(frame.fonts.sans12, (*map.other->columns)[j],
                        d.cell_width * static_cast<float>(step) - frame.metrics.px(2)));
  }
}

const std::vector<std::string>& tokens_of(const Frame& frame) {
  return frame.model.sequences[frame.view.sequence].tokens;
}

}  // namespace

void draw_row_labels(const Frame& frame, const Heatmap& map, const Drawn& d) {
  const auto& tokens = map.other && map.other->rows ? *map.other->rows : tokens_of(frame);
  const float index_right = d.corner.x - frame.metrics.px(6);
  const std::size_t step = label_step(d.cell_height, frame.metrics.px(14));
  const float digits = text_width(frame.fonts.mono12, std::to_string(tokens.size() - 1));
  const auto chosen = d.cross ? std::optional(d.cross->row) : std::nullopt;
  for (std::size_t i = 0; i < d.numbers.n_rows; ++i) {
    if (!d.shows_row(i) || !has_label(i, step, chosen)) continue;
    const bool bright = chosen == i;
    const float middle = d.y(static_cast<double>(i) + 0.5);
    draw_text(frame.fonts.mono12, {index_right, middle}, Align::right_middle,
              packed(bright ? frame.palette.text : frame.palette.faint), std::to_string(i));
    if (!map.row_tokens) continue;
    const float right = index_right - digits - frame.metrics.px(5);
    const float room = right - (d.corner.x - map.label_width);
    draw_text(frame.fonts.sans13, {right, middle}, Align::right_middle,
              packed(bright ? frame.palette.text : frame.palette.dim),
              shortened(frame.fonts.sans13, tokens[i], room));
  }
}

void draw_column_labels(const Frame& frame, const Heatmap& map, const Drawn& d) {
  if (map.other && map.other->columns) return draw_column_names(frame, map, d);
  const bool own_tokens = map.other && map.other->of_stage && map.other->rows;
  const auto& tokens = own_tokens ? *map.other->rows : tokens_of(frame);
  const bool named = map.column_tokens && d.stage.columns == Columns::tokens;
  const float widest = text_width(frame.fonts.mono12, std::to_string(d.numbers.n_cols));
  const std::size_t step =
      label_step(d.cell_width, named ? frame.metrics.px(34) : widest + frame.metrics.px(6));
  const auto chosen = d.cross && !d.row_only ? std::optional(d.cross->column) : std::nullopt;
  const float index_middle = d.corner.y - frame.metrics.px(9);
  for (std::size_t j = 0; j < d.numbers.n_cols; ++j) {
    if (!d.shows_column(j) || !has_label(j, step, chosen)) continue;
    const bool bright = chosen == j;
    const float middle = d.x(static_cast<double>(j) + 0.5);
    draw_text(frame.fonts.mono12, {middle, index_middle}, Align::middle,
              packed(bright ? frame.palette.text : frame.palette.faint), std::to_string(j));
    if (!named) continue;
    const float pitch = d.cell_width * static_cast<float>(step);
    const auto width = [&](std::size_t k) {
      return k < tokens.size() ? text_width(frame.fonts.sans12, tokens[k]) : 0;
    };
    const float beside = std::max(j >= step ? width(j - step) : 0, width(j + step));
    const bool touches = (width(j) + std::min(beside, pitch)) / 2 + frame.metrics.px(4) > pitch;
    const float room = touches ? pitch - frame.metrics.px(2) : width(j);
    draw_text(frame.fonts.sans12, {middle, index_middle - frame.metrics.px(15)}, Align::middle,
              packed(bright ? frame.palette.text : frame.palette.dim),
              shortened(frame.fonts.sans12, tokens[j], room));
  }
}

float column_label_height(const Frame& frame, const Heatmap& map) {
  const bool named = map.column_tokens && core::attention::info(map.stage).columns == Columns::tokens;
  return frame.metrics.px(named && !(map.other && map.other->columns) ? 32 : 18);
}

}  // namespace app::widgets
