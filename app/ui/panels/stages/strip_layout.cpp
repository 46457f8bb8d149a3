#include "app/ui/panels/stages/strip_layout.hpp"

#include <algorithm>
#include <cmath>

#include "app/ui/panels/stages/turning_panel.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "core/text/words.hpp"

namespace app::panels {
namespace {

using core::attention::Columns;
using core::attention::StageInfo;

constexpr float largest_map = 420;    // of a matrix whose cells are too many for numbers
constexpr float smallest_map = 240;   // and at least so large, though two would stand side by side
constexpr float many_features = 104;  // the width of features beside so many tokens
constexpr std::size_t most_tokens_with_numbers = 16;

/// The pitch of cells at which the strip is laid out.
struct CellSize {
  int width = 39, height = 24;                // of token × token maps
  int narrow_width = 38, narrow_height = 18;  // of the others
};

CellSize cells_of(const Frame& frame, int width) {
  const auto part = [width](double share) { return static_cast<int>(std::lround(width * share)); };
  return frame.metrics.compact ? CellSize{width, part(19.0 / 31), part(36.0 / 31), part(17.0 / 31)}
                               : CellSize{width, part(24.0 / 39), part(38.0 / 39), part(18.0 / 39)};
}

/// Length of a picture side: whole cells as long as they fit the largest map, else that much for all of them.
int side(std::size_t count, int pitch, float largest) {
  const int most = static_cast<int>(largest);
  const int n = static_cast<int>(count);
  if (n * pitch <= most) return n * pitch;
  return n <= most ? n * (most / n) : most;
}

float label_width(const Frame& frame, bool tokens) {
  const auto& m = frame.metrics;
  const core::attention::Sequence& sequence = frame.shown.model.sequences[frame.shown.look.sequence];
  const std::size_t n = std::max(sequence.tokens.size(), sequence.keys().size());
  const float index = widgets::text_width(frame.fonts.mono12, std::to_string(n - 1)) + m.px(8);
  if (!tokens) return index + m.px(2);
  float widest = 0;
  for (const auto* names : {&sequence.tokens, &sequence.keys()})
    for (std::size_t i = 0; i < std::min<std::size_t>(names->size(), 512); ++i)
      widest = std::max(widest, widgets::text_width(frame.fonts.sans13, (*names)[i]));
  return std::clamp(index + m.px(5) + std::ceil(widest), m.px(46), m.px(m.compact ? 64 : 92));
}

/// The room that the words on a group and the way to arrows need in a title.
float group_width(const Frame& frame, Stage stage) {
  const std::string words = group_words(frame, stage);
  const float link = has_turning(frame, stage)
                         ? widgets::text_width(frame.fonts.sans13, turning_link) + frame.metrics.px(10)
                         : 0;
  return link + (words.empty() ? 0 : widgets::text_width(frame.fonts.sans13, words) + frame.metrics.px(10));
}

StripMap measure(const Frame& frame, const StageInfo& stage, const CellSize& cells, bool first_of_row,
                 float room) {
  const core::attention::StageMatrix& numbers = stage.matrix(frame.shown.trace, frame.shown.look.head);
  const auto& m = frame.metrics;
  const bool square = stage.columns == Columns::tokens;
  const bool many = numbers.n_rows() > most_tokens_with_numbers;
  const float two_beside = std::floor((room - 2 * label_width(frame, true) - m.px(20)) / 2);
  const float largest = many ? std::min(m.px(largest_map), std::max(two_beside, m.px(smallest_map))) : 1e6f;
  StripMap s;
  s.map.place = std::string("strip/") + stage.name;
  s.map.stage = stage.stage;
  s.map.head = frame.shown.look.head;
  const float widest = square ? largest
                              : m.px(!many            ? largest_map
                                     : stage.per_head ? many_features
                                                      : 1.5f * many_features);
  s.map.width = side(numbers.n_cols(), square ? cells.width : cells.narrow_width, widest);
  s.map.height = side(numbers.n_rows(), square ? cells.height : cells.narrow_height, largest);
  s.map.bar_beside = !square && !many;
  s.map.row_tokens = first_of_row || (!m.compact && !many);
  s.map.column_tokens = !m.compact;
  s.map.label_width = label_width(frame, s.map.row_tokens);
  s.map.show_bar = stage.columns != Columns::single;
  if (frame.shown.look.gutters && square) s.map.gutter_width = m.px(42);
  const float bar = (s.map.bar_beside ? widgets::bar_room(frame, s.map) : 0) +
                    s.map.gutter_width * static_cast<float>(widgets::gutter_count(s.map.stage));
  const std::string formula = formula_of(stage, frame.shown.model, m.compact);
  const std::string shape = core::text::shape_text(numbers.n_rows(), numbers.n_cols());
  const float title = widgets::text_width(frame.fonts.sans17, stage.title) + m.px(20) +
                      widgets::formula_width(frame.fonts.sans14, formula) +
                      widgets::text_width(frame.fonts.mono12, shape) + group_width(frame, stage.stage);
  s.width = std::max(s.map.label_width + static_cast<float>(s.map.width) + bar, title);
  return s;
}

float gap(const Frame& frame, const StripRow& row, std::size_t before) {
  const bool after_embeddings =
      row.line == 1 && before > 0 && row.maps[before - 1].map.stage == Stage::embeddings;
  if (frame.metrics.compact) return frame.metrics.px(after_embeddings ? 30 : 14);
  return frame.metrics.px(after_embeddings ? 44 : row.line == 1 || row.line == 4 ? 24 : 20);
}

/// Whether a row begins with a stage though there is room: what is made of queries and keys stands in pairs.
bool begins_row(const Frame& frame, const StageInfo& stage, float stage_width, float room) {
  if (stage.stage == Stage::normed_queries) return true;
  if (stage.stage != Stage::rotated_queries) return false;
  const bool is_first = !core::attention::info(Stage::normed_queries).present(frame.shown.model);
  return is_first || 2 * stage_width + frame.metrics.px(24) > room;
}

/// Rows of maps that are no wider than the width, from the stages that are present and not folded away.
std::vector<StripRow> break_into_rows(const Frame& frame, const CellSize& cells, float width) {
  std::vector<StripRow> rows;
  float used = 0;
  for (const StageInfo& stage : core::attention::stages()) {
    if (!stage.present(frame.shown.model) || frame.shown.look.folded.contains(stage.stage)) continue;
    const bool new_line = rows.empty() || rows.back().line != stage.line;
    StripMap next = measure(frame, stage, cells, new_line, width);
    const float before = new_line ? 0 : used + gap(frame, rows.back(), rows.back().maps.size());
    if (!new_line && (before + next.width > width || begins_row(frame, stage, next.width, width - before))) {
      rows.push_back({.line = stage.line, .first = false, .maps = {}});
      next = measure(frame, stage, cells, true, width);
      used = next.width;
    } else if (new_line) {
      rows.push_back({.line = stage.line, .first = true, .maps = {}});
      used = next.width;
    } else {
      used = before + next.width;
    }
    rows.back().maps.push_back(std::move(next));
  }
  return rows;
}

/// Gives every row and map its place; returns the height of all.
float place(const Frame& frame, std::vector<StripRow>& rows, float width) {
  const auto& m = frame.metrics;
  float y = 0;
  for (StripRow& row : rows) {
    row.heading = y + m.px(m.compact ? 6 : 10);
    y += m.px(m.compact ? (row.line == 1 && row.first ? 2 : 13) : 26);
    row.top = y;
    float used = 0, bottom = y;
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
        x += gap(frame, row, k) + std::floor(std::min(spare * share, m.px(grouped && k > 1 ? 60 : 120)));
      }
      map.title = {x, y};
      map.labels = {x, y + m.px(m.compact ? 20 : 21)};
      const float picture_bottom =
          map.labels.y + widgets::column_label_height(frame, map.map) + static_cast<float>(map.map.height);
      bottom = std::max(
          bottom,
          picture_bottom + (map.map.bar_beside || !map.map.show_bar ? m.px(8) : m.px(m.compact ? 22 : 26)));
      x += map.width;
    }
    row.bottom = bottom;
    y = bottom + m.px(m.compact ? 4 : 6);
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
  width -= frame.metrics.px(12);  // the return arrows run at the right of all maps
  const int smallest = static_cast<int>(frame.metrics.px(frame.metrics.compact ? 31 : 39));
  const int largest = static_cast<int>(frame.metrics.px(64));
  const bool many = frame.shown.model.n_tokens() > most_tokens_with_numbers;
  std::vector<StripRow> rows = break_into_rows(frame, cells_of(frame, smallest), width);
  const std::size_t fewest = rows.size();
  const float first_height = place(frame, rows, width);
  if (many || first_height > height) {
    // The smallest cells that still hold numbers, when that saves scrolling.
    const int floor = static_cast<int>(frame.metrics.px(27));
    for (int cell = smallest - 1; !many && cell >= floor; --cell) {
      std::vector<StripRow> tighter = break_into_rows(frame, cells_of(frame, cell), width);
      if (place(frame, tighter, width) > height && tighter.size() >= rows.size()) continue;
      return tighter;
    }
    return rows;
  }
  for (int cell = smallest + 1; cell <= largest; ++cell) {
    std::vector<StripRow> wider = break_into_rows(frame, cells_of(frame, cell), width);
    if (wider.size() > fewest || place(frame, wider, width) > height) break;
    rows = std::move(wider);
  }
  return rows;
}

}  // namespace app::panels
