// The names and indices around a heatmap.
#include <algorithm>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/heatmap/heatmap_drawn.hpp"

namespace app::widgets {
namespace {

using core::attention::Columns;

constexpr float longest_turned = 64, longest_level = 72;  // at scale 1
constexpr std::size_t most_turned = 64;

/// A length around the cells, which grows with the text.
float grown(const Frame& frame, float length) {
  return std::round(frame.metrics.px(length) * text_growth(frame));
}

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
  return map.columns == ColumnLabels::tokens && core::attention::info(map.stage).columns == Columns::tokens;
}

/// The room that a name takes above its column; what is longer than a label may be is shortened.
float name_width(const Frame& frame, const std::vector<std::string>& tokens, std::size_t j) {
  if (j >= tokens.size()) return 0;
  return std::min(text_width(frame.fonts.sans12, tokens[j]), grown(frame, longest_level));
}

/// Whether the names of every so many columns stand beside each other without touching.
bool names_fit(const Frame& frame, const std::vector<std::string>& tokens, std::size_t step, float pitch) {
  const float gap = frame.metrics.px(4), room = pitch * static_cast<float>(step);
  for (std::size_t j = 0; j < tokens.size(); j += step) {
    const float width = name_width(frame, tokens, j);
    if (j + step < tokens.size() && (width + name_width(frame, tokens, j + step)) / 2 + gap > room)
      return false;
  }
  return true;
}

/// How the names of the columns stand: level or turned, at every so many columns.
struct ColumnNames {
  bool turned = false;
  std::size_t step = 1;
};

/// Level where all names fit; else upright, as long as every fourth column can have one; else some of them,
/// level.
ColumnNames column_names(const Frame& frame, const std::vector<std::string>& tokens, float pitch) {
  if (tokens.size() <= most_turned) {
    if (names_fit(frame, tokens, 1, pitch)) return {};
    if (pitch >= platform::font_size(frame.fonts.sans12)) return {true, 1};
    for (const std::size_t step : {2u, 4u})
      if (static_cast<float>(step) * pitch >= platform::font_size(frame.fonts.sans12)) return {true, step};
  }
  const float index = text_width(frame.fonts.mono12, std::to_string(tokens.size())) + frame.metrics.px(6);
  return {false, label_step(pitch, std::max(index, grown(frame, 34)))};
}

}  // namespace

void draw_row_labels(const Frame& frame, const Heatmap& map, const Drawn& d) {
  if (map.label_width <= 0) return;
  const auto& tokens =
      map.other && map.other->rows ? *map.other->rows : row_tokens(d.stage, sequence_of(frame));
  const float index_right = d.corner.x - frame.metrics.px(6);
  // Names that are a little too high for their rows are set smaller; if that does not do, every second has
  // one.
  ImFont* font = d.cell_height + 0.01f >= platform::font_size(frame.fonts.sans13) ? frame.fonts.sans13
                                                                                  : frame.fonts.sans12;
  const std::size_t step = label_step(d.cell_height + 0.01f, platform::font_size(font));
  const float digits = text_width(frame.fonts.mono12, std::to_string(tokens.size() - 1));
  const auto chosen = d.cross ? std::optional(d.cross->row) : std::nullopt;
  for (std::size_t i = 0; i < d.numbers.n_rows; ++i) {
    if (!d.shows_row(i) || !has_label(i, step, chosen)) continue;
    const bool bright = chosen == i;
    const float middle = d.middle_of_row(i);
    draw_text(frame.fonts.mono12, {index_right, middle}, Align::right_middle,
              packed(bright ? frame.palette.text : frame.palette.faint), std::to_string(i));
    if (!map.row_tokens || !has_name(tokens, i)) continue;
    const float right = index_right - digits - frame.metrics.px(5);
    const float room = right - (d.corner.x - map.label_width);
    draw_text(font, {right, middle}, Align::right_middle,
              packed(bright ? frame.palette.text : frame.palette.dim), shortened(font, tokens[i], room));
  }
}

void draw_column_labels(const Frame& frame, const Heatmap& map, const Drawn& d) {
  if (map.columns == ColumnLabels::none) return;
  if (map.other && map.other->columns) return draw_column_names(frame, map, d);
  const bool named = has_column_tokens(map);
  const auto& tokens = column_tokens(frame, map);
  const float index = text_width(frame.fonts.mono12, std::to_string(d.numbers.n_cols)) + frame.metrics.px(6);
  const ColumnNames names = named ? column_names(frame, tokens, d.cell_width) : ColumnNames{};
  const std::size_t index_step = std::max(names.turned ? 1 : names.step, label_step(d.cell_width, index));
  const auto chosen = d.cross && !d.row_only ? std::optional(d.cross->column) : std::nullopt;
  const float index_middle = d.corner.y - grown(frame, 9), height = column_label_height(frame, map);
  for (std::size_t j = 0; j < d.numbers.n_cols; ++j) {
    if (!d.shows_column(j)) continue;
    const bool bright = chosen == j;
    const float middle = d.x(static_cast<double>(j) + 0.5);
    if (has_label(j, index_step, chosen))
      draw_text(frame.fonts.mono12, {middle, index_middle}, Align::middle,
                packed(bright ? frame.palette.text : frame.palette.faint), std::to_string(j));
    if (!named || !has_name(tokens, j) || !has_label(j, names.step, chosen)) continue;
    const ImU32 ink = packed(bright ? frame.palette.text : frame.palette.dim);
    if (names.turned) {
      draw_text_turned(frame.fonts.sans12, {middle, d.corner.y - grown(frame, 18)}, ink,
                       shortened(frame.fonts.sans12, tokens[j], height - grown(frame, 20)));
      continue;
    }
    const float room = names.step == 1 ? grown(frame, longest_level)
                                       : d.cell_width * static_cast<float>(names.step) - frame.metrics.px(4);
    draw_text(frame.fonts.sans12, {middle, index_middle - grown(frame, 15)}, Align::middle, ink,
              shortened(frame.fonts.sans12, tokens[j], room));
  }
}

float column_label_height(const Frame& frame, const Heatmap& map) {
  if (map.columns == ColumnLabels::none) return 0;
  if (!has_column_tokens(map) || (map.other && map.other->columns)) return grown(frame, 18);
  const auto& tokens = column_tokens(frame, map);
  const float pitch = static_cast<float>(map.width) /
                      static_cast<float>(std::max<std::size_t>(1, frame.shown.model.n_keys()));
  if (!column_names(frame, tokens, pitch).turned) return grown(frame, 32);
  float longest = 0;
  for (const std::string& token : tokens) longest = std::max(longest, text_width(frame.fonts.sans12, token));
  return grown(frame, 20) + std::min(longest, grown(frame, longest_turned));
}

}  // namespace app::widgets
