// The names and indices around a heatmap.
#include <algorithm>

#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/heatmap/heatmap_drawn.hpp"

namespace app::widgets {
namespace {

using core::attention::Columns;

constexpr float turned_pitch = 15, longest_turned = 64;  // at scale 1
constexpr std::size_t most_turned = 64;

/// Whether a label stands at k: every step-th, and the chosen one, which its neighbours give way to.
bool has_label(std::size_t k, std::size_t step, std::optional<std::size_t> chosen) {
  if (chosen == k) return true;
  if (k % step != 0) return false;
  if (!chosen || step == 1) return true;
  return (k > *chosen ? k - *chosen : *chosen - k) >= step;
}

/// Whether a token has a name that its index does not say.
bool has_name(const std::vector<std::string>& tokens, std::size_t k) {
  return k < tokens.size() && tokens[k] != std::to_string(k);
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

const core::attention::Sequence& sequence_of(const Frame& frame) {
  return frame.shown.model.sequences[frame.shown.look.sequence];
}

/// The tokens that name the columns.
const std::vector<std::string>& column_tokens(const Frame& frame, const Heatmap& map) {
  return map.other && map.other->of_stage && map.other->keys ? *map.other->keys : sequence_of(frame).keys();
}

bool has_column_tokens(const Heatmap& map) {
  return map.column_tokens && core::attention::info(map.stage).columns == Columns::tokens;
}

/// Whether a name reaches into that of a neighbour a step away.
bool touches(const Frame& frame, const std::vector<std::string>& tokens, std::size_t j, std::size_t step,
             float pitch) {
  const auto width = [&](std::size_t k) {
    return k < tokens.size() ? text_width(frame.fonts.sans12, tokens[k]) : 0;
  };
  const float beside = std::max(j >= step ? width(j - step) : 0, width(j + step));
  return (width(j) + std::min(beside, pitch)) / 2 + frame.metrics.px(4) > pitch;
}

/// Names that would have to be shortened stand upright, as long as every column can have one.
bool turns_names(const Frame& frame, const Heatmap& map, float pitch) {
  const auto& tokens = column_tokens(frame, map);
  if (pitch < frame.metrics.px(turned_pitch) || tokens.size() > most_turned) return false;
  for (std::size_t j = 0; j < tokens.size(); ++j)
    if (text_width(frame.fonts.sans12, tokens[j]) > pitch - frame.metrics.px(2) &&
        touches(frame, tokens, j, 1, pitch))
      return true;
  return false;
}

}  // namespace

void draw_row_labels(const Frame& frame, const Heatmap& map, const Drawn& d) {
  const auto& tokens =
      map.other && map.other->rows ? *map.other->rows : row_tokens(d.stage, sequence_of(frame));
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
    if (!map.row_tokens || !has_name(tokens, i)) continue;
    const float right = index_right - digits - frame.metrics.px(5);
    const float room = right - (d.corner.x - map.label_width);
    draw_text(frame.fonts.sans13, {right, middle}, Align::right_middle,
              packed(bright ? frame.palette.text : frame.palette.dim),
              shortened(frame.fonts.sans13, tokens[i], room));
  }
}

void draw_column_labels(const Frame& frame, const Heatmap& map, const Drawn& d) {
  if (map.other && map.other->columns) return draw_column_names(frame, map, d);
  const bool named = has_column_tokens(map), turned = named && turns_names(frame, map, d.cell_width);
  const auto& tokens = column_tokens(frame, map);
  const float widest = text_width(frame.fonts.mono12, std::to_string(d.numbers.n_cols)) + frame.metrics.px(6);
  const float room = turned  ? std::max(frame.metrics.px(turned_pitch), widest)
                     : named ? frame.metrics.px(34)
                             : widest;
  const std::size_t step = label_step(d.cell_width, room);
  const auto chosen = d.cross && !d.row_only ? std::optional(d.cross->column) : std::nullopt;
  const float index_middle = d.corner.y - frame.metrics.px(9), height = column_label_height(frame, map);
  for (std::size_t j = 0; j < d.numbers.n_cols; ++j) {
    if (!d.shows_column(j) || !has_label(j, step, chosen)) continue;
    const bool bright = chosen == j;
    const float middle = d.x(static_cast<double>(j) + 0.5);
    draw_text(frame.fonts.mono12, {middle, index_middle}, Align::middle,
              packed(bright ? frame.palette.text : frame.palette.faint), std::to_string(j));
    if (!named || !has_name(tokens, j)) continue;
    const ImU32 ink = packed(bright ? frame.palette.text : frame.palette.dim);
    if (turned) {
      draw_text_turned(frame.fonts.sans12, {middle, d.corner.y - frame.metrics.px(18)}, ink,
                       shortened(frame.fonts.sans12, tokens[j], height - frame.metrics.px(20)));
      continue;
    }
    const float pitch = d.cell_width * static_cast<float>(step);
    const float fits = touches(frame, tokens, j, step, pitch) ? pitch - frame.metrics.px(2)
                                                              : text_width(frame.fonts.sans12, tokens[j]);
    draw_text(frame.fonts.sans12, {middle, index_middle - frame.metrics.px(15)}, Align::middle, ink,
              shortened(frame.fonts.sans12, tokens[j], fits));
  }
}

float column_label_height(const Frame& frame, const Heatmap& map) {
  if (!has_column_tokens(map) || (map.other && map.other->columns)) return frame.metrics.px(18);
  const float pitch = static_cast<float>(map.width) /
                      static_cast<float>(std::max<std::size_t>(1, frame.shown.model.n_keys()));
  if (!turns_names(frame, map, pitch)) return frame.metrics.px(32);
  float longest = 0;
  for (const std::string& token : column_tokens(frame, map))
    longest = std::max(longest, text_width(frame.fonts.sans12, token));
  return frame.metrics.px(20) + std::min(longest, frame.metrics.px(longest_turned));
}

}  // namespace app::widgets
