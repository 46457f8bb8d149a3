#include "app/ui/panels/stages/strip_cells.hpp"

#include <algorithm>
#include <cmath>

#include "app/ui/panels/stages/strip_layout.hpp"
#include "app/ui/panels/stages/turning_panel.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/heatmap/color_bar.hpp"
#include "core/base/text.hpp"
#include "core/editing/presets.hpp"

namespace app::panels {
namespace {

using core::attention::Columns;
using core::attention::StageInfo;

constexpr std::size_t most_cells_with_numbers = 16;  // of a row or a column
// Of maps that are to stand beside each other, whatever decimals that costs: three of six tokens do, while
// matrices of features rather have three decimals in rows of their own.
constexpr std::size_t columns_of_a_row = 24, features_of_a_row = 12;
constexpr float largest_map = 420;    // at scale 1, of a matrix without numbers
constexpr float smallest_map = 240;   // and at least so large, though two would stand side by side
constexpr float many_features = 104;  // the width of features beside so many tokens
constexpr float narrowest_cell = 26, widest_cell = 64;

/// The room that the words on a group and the ways to arrows or to the laboratory need in a title.
float group_width(const Frame& frame, Stage stage) {
  const std::string words = group_words(frame, stage);
  const char* way = has_turning(frame, stage)                                ? turning_link
                    : stage == Stage::dropout_mask && !frame.metrics.compact ? laboratory_link
                                                                             : "";
  const float link = *way ? widgets::text_width(frame.fonts.sans13, way) + frame.metrics.px(10) : 0;
  return link + (words.empty() ? 0 : widgets::text_width(frame.fonts.sans13, words) + frame.metrics.px(10));
}

float title_width(const Frame& frame, const StripBlock& b) {
  const bool compact = frame.metrics.compact;
  const auto& f = frame.fonts;
  const std::string formula = formula_of(*b.stage, frame.shown.model, compact);
  const float gap = frame.metrics.px(10);
  return widgets::text_width(compact ? f.sans16 : f.sans17, b.stage->title) + gap +
         (formula.empty() ? 0 : widgets::formula_width(compact ? f.sans13 : f.sans14, formula) + gap) +
         widgets::text_width(f.mono12, core::text::shape_text(b.rows, b.columns)) +
         group_width(frame, b.stage->stage);
}

/// The widest name of a token, at most as wide as a label may be.
float widest_name(const Frame& frame) {
  const core::attention::Sequence& sequence = frame.shown.model.sequences[frame.shown.look.sequence];
  float widest = 0;
  for (const auto* names : {&sequence.tokens, &sequence.keys()})
    for (std::size_t i = 0; i < std::min<std::size_t>(names->size(), 512); ++i)
      widest = std::max(widest, widgets::text_width(frame.fonts.sans13, (*names)[i]));
  return std::min(std::ceil(widest), frame.metrics.px(frame.metrics.compact ? 64 : 76));
}

StripBlock measure(const Frame& frame, const StageInfo& stage, float index, float name, float room) {
  const auto& m = frame.metrics;
  const core::attention::StageMatrix& numbers = stage.matrix(frame.shown.trace, frame.shown.look.head);
  StripBlock b;
  b.stage = &stage;
  b.rows = numbers.n_rows(), b.columns = numbers.n_cols();
  b.square = stage.columns == Columns::tokens;
  b.picture = std::max(b.rows, b.columns) > most_cells_with_numbers;
  if (!b.picture) {
    const core::text::NumberNeeds needs = widgets::needs_of_stage(frame, stage.stage, frame.shown.look.head);
    for (int d = 0; d < 5; ++d)
      b.narrowest.at(static_cast<std::size_t>(d)) = widgets::cell_width_for(frame, needs.characters(d));
  }
  b.own_names = frame.shown.model.has_memory() && stage.rows == core::attention::Rows::keys &&
                stage.stage != Stage::values;
  b.names = std::max(index + m.px(13) + name, m.px(46));
  widgets::Heatmap map;
  map.stage = stage.stage, map.head = frame.shown.look.head;
  map.bar_beside = has_bar_beside(b);
  map.show_bar = stage.columns != Columns::single;
  // The low end of a bar needs no more than what the gap before it leaves free.
  b.indices = std::max(index + m.px(10), widgets::bar_low_room(frame, map) - m.px(widgets::bar_end_in_gap));
  b.indices_alone = std::max(b.indices, widgets::bar_low_room(frame, map) + m.px(1));
  b.around = map.bar_beside ? widgets::bar_room(frame, map) : 0;
  if (frame.shown.look.gutters && b.square)
    b.around += m.px(42) * static_cast<float>(widgets::gutter_count(stage.stage));
  b.title = title_width(frame, b);
  const float two_beside = std::floor((room - b.names - b.indices - m.px(20)) / 2);
  b.largest = std::min(m.px(largest_map), std::max(two_beside, m.px(smallest_map)));
  return b;
}

/// Length of a picture side: whole cells as long as they fit the largest map, else that much for all of them.
int side(std::size_t count, float pitch, float largest) {
  const int most = static_cast<int>(largest), n = static_cast<int>(count);
  if (static_cast<float>(n) * pitch <= largest) return n * static_cast<int>(pitch);
  return n <= most ? n * (most / n) : most;
}

/// Whether the preset that the model was made from says that its numbers are printed somewhere.
bool claims_printed_digits(const Frame& frame) {
  const core::editing::Preset* preset = core::editing::find_preset(frame.document.preset);
  return preset && (preset->evidence == core::editing::Evidence::printed ||
                    preset->evidence == core::editing::Evidence::published);
}

float gap_before(const Frame& frame, const std::vector<StripBlock>& line, std::size_t k) {
  return gap_in_line(frame, line[k].stage->line, k > 0 && line[k - 1].stage->stage == Stage::embeddings);
}

/// Whether the maps that make a row fit beside each other; titles have their width whatever the decimals are.
bool rows_fit(const Frame& frame, const std::vector<StripBlock>& line, const LineCells& cells, float width) {
  float used = 0;
  std::size_t columns = 0;
  for (std::size_t k = 0; k < line.size(); ++k) {
    columns += line[k].columns;
    const bool first =
        k == 0 || line[k].starts_row || line[k].picture ||
        columns > (line[k].square || cells.decimals > 3 ? columns_of_a_row : features_of_a_row);
    if (first) columns = line[k].columns;
    const auto picture = static_cast<float>(picture_width(frame, line[k], cells, width));
    used = (first ? 0 : used + gap_before(frame, line, k)) +
           row_label_room(line[k], cells, first, picture, width) + picture + line[k].around;
    if (used > width && !line[k].picture) return false;
  }
  return true;
}

/// The width of cells whose numbers would do with less.
float least_width(const Frame& frame) {
  return std::round(frame.metrics.px(narrowest_cell) * widgets::text_growth(frame));
}

/// The most decimals with which the maps of a row fit beside each other.
int fitting_decimals(const Frame& frame, const std::vector<StripBlock>& line, float width) {
  constexpr int most = 4;
  for (int decimals = most; decimals > core::text::least_decimals; --decimals) {
    LineCells cells{.decimals = decimals, .width = least_width(frame)};
    // More than three are worth neither names nor cells of one width.
    if (decimals == most) {
      cells.named = !frame.metrics.compact;
      for (const StripBlock& b : line)
        if (!b.picture) cells.width = std::max(cells.width, cell_width(b, cells));
    }
    if (rows_fit(frame, line, cells, width)) return decimals;
  }
  return core::text::least_decimals;
}

}  // namespace

std::array<std::vector<StripBlock>, 4> strip_blocks(const Frame& frame, float width) {
  const core::attention::Sequence& sequence = frame.shown.model.sequences[frame.shown.look.sequence];
  const std::size_t n = std::max(sequence.tokens.size(), sequence.keys().size());
  const float index = widgets::text_width(frame.fonts.mono12, std::to_string(n - 1));
  const float name = widest_name(frame);
  const bool normed = core::attention::info(Stage::normed_queries).present(frame.shown.model);
  std::array<std::vector<StripBlock>, 4> lines;
  for (const StageInfo& stage : core::attention::stages()) {
    if (!stage.present(frame.shown.model) || frame.shown.look.folded.contains(stage.stage)) continue;
    StripBlock b = measure(frame, stage, index, name, width);
    // What is made of queries and keys stands in pairs.
    const float wide = block_width(frame, b, {}, true, width);
    b.starts_row =
        stage.stage == Stage::normed_queries ||
        (stage.stage == Stage::rotated_queries && (!normed || 4 * wide + 3 * frame.metrics.px(24) > width));
    lines.at(static_cast<std::size_t>(stage.line - 1)).push_back(b);
  }
  return lines;
}

float cell_width(const StripBlock& block, const LineCells& cells) {
  return std::max(cells.width, block.narrowest.at(static_cast<std::size_t>(cells.decimals)));
}

int picture_width(const Frame& frame, const StripBlock& block, const LineCells& cells, float room) {
  const auto& m = frame.metrics;
  if (!block.picture) return static_cast<int>(cell_width(block, cells)) * static_cast<int>(block.columns);
  if (!block.square) {
    const bool many = block.rows > most_cells_with_numbers;
    const float most = m.px(!many                   ? largest_map
                            : block.stage->per_head ? many_features
                                                    : 1.5f * many_features);
    return side(block.columns, m.px(m.compact ? 36 : 38), std::min(most, room - block.names - block.around));
  }
  return side(block.columns, m.px(m.compact ? 31 : 39), block.largest);
}

float row_label_room(const StripBlock& block, const LineCells& cells, bool first_of_row, float picture,
                     float room) {
  const bool named =
      (first_of_row || cells.named || block.own_names) && block.names + picture + block.around <= room;
  return named ? block.names : first_of_row ? block.indices_alone : block.indices;
}

float block_width(const Frame& frame, const StripBlock& block, const LineCells& cells, bool first_of_row,
                  float room) {
  const auto picture = static_cast<float>(picture_width(frame, block, cells, room));
  return std::max(row_label_room(block, cells, first_of_row, picture, room) + picture + block.around,
                  block.title);
}

int picture_height(const Frame& frame, const StripBlock& block, float cell) {
  if (block.rows <= most_cells_with_numbers) return static_cast<int>(cell) * static_cast<int>(block.rows);
  return side(block.rows, frame.metrics.px(frame.metrics.compact ? 19 : 24), block.largest);
}

bool has_bar_beside(const StripBlock& block) {
  return !block.square && block.rows <= most_cells_with_numbers;
}

float gap_in_line(const Frame& frame, int line, bool after_embeddings) {
  if (frame.metrics.compact) return frame.metrics.px(after_embeddings ? 30 : 14);
  return frame.metrics.px(after_embeddings ? 44 : line == 1 || line == 4 ? 24 : 20);
}

std::vector<std::size_t> row_starts(const Frame& frame, const std::vector<StripBlock>& line,
                                    const LineCells& cells, float width) {
  std::vector<std::size_t> starts;
  float used = 0;
  for (std::size_t k = 0; k < line.size(); ++k) {
    const float beside = used + gap_before(frame, line, k) + block_width(frame, line[k], cells, false, width);
    if (k == 0 || line[k].starts_row || beside > width) {
      starts.push_back(k);
      used = block_width(frame, line[k], cells, true, width);
    } else {
      used = beside;
    }
  }
  return starts;
}

std::array<LineCells, 4> choose_cells(const Frame& frame, const std::array<std::vector<StripBlock>, 4>& lines,
                                      float width) {
  const auto& m = frame.metrics;
  const float grown = widgets::text_growth(frame);
  std::array<LineCells, 4> all;
  std::array<std::size_t, 4> fewest{};
  const bool printed = claims_printed_digits(frame);
  const auto rows = [&](std::size_t l) { return row_starts(frame, lines.at(l), all.at(l), width).size(); };
  for (std::size_t l = 0; l < lines.size(); ++l) {
    LineCells& cells = all.at(l);
    cells.decimals = printed ? 4 : fitting_decimals(frame, lines.at(l), width);
    cells.width = least_width(frame);
    fewest.at(l) = rows(l);
    cells.named = !m.compact;
    if (cells.named) cells.named = rows(l) <= fewest.at(l);
  }
  const auto overflows = [&](std::size_t l) {
    return std::ranges::any_of(lines.at(l), [&](const StripBlock& b) {
      const auto picture = static_cast<float>(picture_width(frame, b, all.at(l), width));
      return !b.picture && b.names + picture + b.around > width;  // names come before wider cells
    });
  };
  // What is left widens the cells, those of lines that look alike together.
  const auto alike = [&](std::size_t a, std::size_t b) { return fewest.at(a) == fewest.at(b) ? b : a; };
  using Lines = std::pair<std::size_t, std::size_t>;
  for (const auto& [a, b] : {Lines{0, alike(0, 3)}, {3, alike(3, 0)}, {1, alike(1, 2)}, {2, alike(2, 1)}})
    for (float wide = std::round(m.px(widest_cell) * grown); wide > m.px(narrowest_cell); --wide) {
      const float before = all.at(a).width;
      all.at(a).width = all.at(b).width = wide;
      if (rows(a) <= fewest.at(a) && rows(b) <= fewest.at(b) && !overflows(a) && !overflows(b)) break;
      all.at(a).width = all.at(b).width = before;
    }
  return all;
}

}  // namespace app::panels
