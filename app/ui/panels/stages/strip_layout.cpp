#include "app/ui/panels/stages/strip_layout.hpp"

#include <algorithm>
#include <cmath>

#include "app/ui/panels/stages/strip_cells.hpp"
#include "app/ui/widgets/cell_words.hpp"

namespace app::panels {
namespace {

constexpr float lowest_cell = 17, highest_cell = 40;  // of token × token maps, at scale 1
constexpr float most_upright = 0.95f;                 // height of a cell for its width

using Lines = std::array<std::vector<StripBlock>, 4>;

/// Heights of the cells of token × token maps and of the others, in pixels.
struct Heights {
  float square = 0, narrow = 0;
};

/// In the proportions of the two densities, with room for a line of text.
Heights heights_for(const Frame& frame, float square) {
  const float least = std::round(frame.metrics.px(16) * widgets::text_growth(frame));
  const float share = frame.metrics.compact ? 17.0f / 19 : 18.0f / 24;
  return {square, std::max(least, std::round(square * share))};
}

StripMap map_of(const Frame& frame, const StripBlock& b, const LineCells& cells, const Heights& heights,
                bool first, float room) {
  StripMap s;
  s.map.place = std::string("strip/") + b.stage->name;
  s.map.stage = b.stage->stage;
  s.map.head = frame.shown.look.head;
  s.map.width = picture_width(frame, b, cells, room);
  s.map.height = picture_height(frame, b, b.square ? heights.square : heights.narrow);
  s.map.bar_beside = has_bar_beside(b);
  s.map.most_decimals = cells.decimals;
  s.map.label_width = row_label_room(b, cells, first, static_cast<float>(s.map.width), room);
  s.map.row_tokens = s.map.label_width >= b.names;
  if (frame.metrics.compact) s.map.columns = widgets::ColumnLabels::indices;
  s.map.show_bar = b.stage->columns != core::attention::Columns::single;
  if (frame.shown.look.gutters && b.square) s.map.gutter_width = frame.metrics.px(42);
  s.width = block_width(frame, b, cells, first, room);
  return s;
}

float gap(const Frame& frame, const StripRow& row, std::size_t before) {
  const bool after_embeddings =
      row.line == 1 && before > 0 && row.maps[before - 1].map.stage == Stage::embeddings;
  return gap_in_line(frame, row.line, after_embeddings);
}

std::vector<StripRow> rows_of(const Frame& frame, const Lines& lines, const std::array<LineCells, 4>& cells,
                              const Heights& heights, float width) {
  std::vector<StripRow> rows;
  for (std::size_t l = 0; l < lines.size(); ++l) {
    const std::vector<std::size_t> starts = row_starts(frame, lines.at(l), cells.at(l), width);
    for (std::size_t r = 0; r < starts.size(); ++r) {
      rows.push_back({.line = static_cast<int>(l) + 1, .first = r == 0, .maps = {}});
      const std::size_t end = r + 1 < starts.size() ? starts[r + 1] : lines.at(l).size();
      for (std::size_t k = starts[r]; k < end; ++k)
        rows.back().maps.push_back(
            map_of(frame, lines.at(l)[k], cells.at(l), heights, k == starts[r], width));
    }
  }
  return rows;
}

/// Gives every row and map its place; returns the height of all.
float place(const Frame& frame, std::vector<StripRow>& rows, float width) {
  const bool compact = frame.metrics.compact;
  const float grown = widgets::text_growth(frame);
  const auto px = [&](float length) { return std::round(frame.metrics.px(length) * grown); };
  float y = 0;
  for (StripRow& row : rows) {
    row.heading = y + px(compact ? 6 : 10);
    y += px(compact ? (row.line == 1 && row.first ? 2 : 13) : 26);
    row.top = y;
    float used = 0, bottom = y;
    std::vector<float> labels;
    for (const StripMap& map : row.maps) labels.push_back(widgets::column_label_height(frame, map.map));
    // Rows of tokens stand beside each other, so that the highest labels push all pictures down.
    const float highest = std::ranges::max(labels);
    for (std::size_t k = 0; k < row.maps.size(); ++k)
      used += row.maps[k].width + (k > 0 ? gap(frame, row, k) : 0);
    const float spare = std::max(0.0f, width - used);
    const bool grouped =
        row.line == 1 && row.first && row.maps.size() > 2;  // queries, keys and values stand together
    float x = 0;
    for (std::size_t k = 0; k < row.maps.size(); ++k) {
      StripMap& map = row.maps[k];
      if (k > 0) {
        const float share = grouped ? (k == 1 ? 0.5f : 0.5f / static_cast<float>(row.maps.size() - 2))
                                    : 1.0f / static_cast<float>(row.maps.size() - 1);
        x += gap(frame, row, k) + std::floor(std::min(spare * share, px(grouped && k > 1 ? 60 : 120)));
      }
      map.title = {x, y};
      const float above = y + px(compact ? 20 : 21);
      map.labels = {x, above + highest - labels[k]};
      const float picture_bottom = above + highest + static_cast<float>(map.map.height);
      bottom = std::max(
          bottom, picture_bottom + (map.map.bar_beside || !map.map.show_bar ? px(8) : px(compact ? 22 : 26)));
      x += map.width;
    }
    row.bottom = bottom;
    y = bottom + px(compact ? 4 : 6);
  }
  return y;
}

}  // namespace

std::string group_words(const Frame& frame, Stage stage) {
  const auto& model = frame.shown.model;
  const bool shared = core::attention::n_matrices(model, stage) < model.n_heads;
  return shared ? widgets::head_words(model, stage, frame.shown.look.head) : "";
}

std::vector<StripRow> lay_out_strip(const Frame& frame, float width, float height) {
  const float grown = widgets::text_growth(frame);
  const auto length = [&](float at_scale_1) { return std::round(frame.metrics.px(at_scale_1) * grown); };
  const Lines lines = strip_blocks(frame, width);
  const std::array<LineCells, 4> cells = choose_cells(frame, lines, width);
  float highest = length(highest_cell);
  for (const StripBlock& b : lines[1])
    if (!b.picture) highest = std::min(highest, std::floor(cell_width(b, cells[1]) * most_upright));
  // The highest cells with which all of it can be seen; where none are, the usual ones, and it scrolls.
  const auto with_height = [&](float square) {
    std::vector<StripRow> rows = rows_of(frame, lines, cells, heights_for(frame, square), width);
    const bool fits = place(frame, rows, width) <= height;
    return std::pair(std::move(rows), fits);
  };
  auto [rows, fits] = with_height(length(lowest_cell));
  if (!fits) return with_height(length(frame.metrics.compact ? 19 : 24)).first;
  float low = length(lowest_cell), high = std::max(low, highest) + 1;
  while (high - low > 1) {
    const float middle = std::floor((low + high) / 2);
    auto [higher, also_fits] = with_height(middle);
    (also_fits ? low : high) = middle;
    if (also_fits) rows = std::move(higher);
  }
  return rows;
}

}  // namespace app::panels
