#include "app/ui/panels/stages/stages_panel.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/menus/menus.hpp"
#include "app/ui/panels/stages/large_panel.hpp"
#include "app/ui/panels/stages/rotation_panel.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/heatmap/color_bar.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/text.hpp"
#include "core/editing/presets.hpp"
#include "core/graph/line_words.hpp"

namespace app::panels {

namespace {

void switch_large(const Frame& frame, Stage stage) {
  frame.commands.add(
      set<&Look::large>(frame.newest.look.large == stage ? std::nullopt : std::optional(stage)));
}

}  // namespace

void draw_stage_title(const Frame& frame, const std::string& name, Stage stage, ImFont* font, ImVec2 at) {
  const char* words = core::attention::info(stage).title;
  const ImVec2 size{widgets::text_width(font, words), platform::font_size(font) + 2};
  platform::move_to({std::round(at.x), std::round(at.y)});
  const bool pressed = widgets::hit_area(name.c_str(), size);
  frame.landmarks.mark_item(name);
  const ImVec2 min = ImGui::GetItemRectMin(), max = ImGui::GetItemRectMax();
  ImDrawList* list = ImGui::GetWindowDrawList();
  widgets::draw_text(font, at, widgets::Align::left_top, packed(frame.palette.text), words);
  if (ImGui::IsItemFocused() && ImGui::GetIO().NavVisible)
    widgets::outline(list, {min.x - 3, min.y - 1}, {max.x + 3, max.y + 1}, packed(frame.palette.accent), 2);
  if (pressed) switch_large(frame, stage);
  if (ImGui::IsItemHovered()) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    list->AddRectFilled({min.x, max.y - 1}, {max.x, max.y}, packed(frame.palette.faint));
    const char* remark = frame.shown.look.large ? "A click goes back to all stages."
                                                : "Click to show it large; right-click for more.";
    if (const auto* term = widgets::term_of(stage)) widgets::explain_term(frame, *term, remark);
  }
  draw_stage_menu(frame, "title", stage, frame.shown.look.head);
}

void handle_stage(const Frame& frame, Stage stage) {
  if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left))
    switch_large(frame, stage);
}

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
  s.map.max_decimals = cells.decimals;
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
  const core::attention::Sequence& sequence = frame.shown.sequence();
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
  b.own_names = frame.shown.model.has_key_embeddings() && stage.rows == core::attention::Rows::keys &&
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
  const core::attention::Sequence& sequence = frame.shown.sequence();
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

namespace {

using core::attention::StageInfo;

constexpr float folded_height = 20;  // of the line of folded stages, at scale 1

std::string heading(const Frame& frame, int line) {
  return core::explain::line_words(frame.shown.model, frame.shown.trace, frame.shown.look.head, line);
}

void draw_heading(const Frame& frame, const StripRow& row, ImVec2 origin) {
  if (frame.metrics.compact || !row.first) return;
  const float y = origin.y + row.heading;
  widgets::draw_text(frame.fonts.mono12, {origin.x, y}, widgets::Align::left_middle,
                     packed(frame.palette.faint), std::to_string(row.line));
  const std::string words = heading(frame, row.line);
  const ImVec2 at{origin.x + frame.metrics.px(18), y};
  widgets::draw_text(frame.fonts.sans14, at, widgets::Align::left_middle, packed(frame.palette.dim), words);
  frame.landmarks.mark("strip/heading/" + std::to_string(row.line), {at.x, at.y - frame.metrics.px(8)},
                       {at.x + widgets::text_width(frame.fonts.sans14, words), at.y + frame.metrics.px(8)});
}

/// The line that leads from the end of one row back to the beginning of the next.
void draw_return(const Frame& frame, const StripRow& from, const StripRow& to, ImVec2 origin, float width) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float right = origin.x + width - 1, y = origin.y + to.heading;
  const float top = origin.y + from.bottom - frame.metrics.px(3);
  const float words =
      frame.metrics.compact || !to.first
          ? 0
          : widgets::text_width(frame.fonts.sans14, heading(frame, to.line)) + frame.metrics.px(32);
  const ImU32 color = packed(frame.palette.strong_line);
  list->AddRectFilled({right - 1, top}, {right, y}, color);
  widgets::draw_arrow(list, {right, y}, {origin.x + words, y}, color, frame.metrics.px(6));
}

/// A link behind the title of the dropout mask, where there is room.
void draw_way_to_laboratory(const Frame& frame, ImVec2 at, float end) {
  const char* words = laboratory_link;
  if (at.x + widgets::text_width(frame.fonts.sans13, words) > end) return;
  if (widgets::link(frame, "strip/laboratory", frame.fonts.sans13, at, widgets::Align::left_middle,
                    frame.palette.accent, words))
    perform("tab/laboratory", situation_of(frame), frame.commands);
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("Many masks, their mean, and its convergence");
}

/// A link behind the titles of what turned, where there is room.
void draw_way_to_positions(const Frame& frame, Stage stage, ImVec2 at, float end) {
  const char* words = turning_link;
  if (at.x + widgets::text_width(frame.fonts.sans13, words) > end) return;
  if (widgets::link(frame, std::string("strip/positions/") + core::attention::info(stage).name,
                    frame.fonts.sans13, at, widgets::Align::left_middle, frame.palette.accent, words))
    frame.commands.add(set<&Look::large>(stage));
  if (ImGui::IsItemHovered())
    ImGui::SetTooltip("The rotary pairs of a query and a key, their angles and the score");
}

void draw_title(const Frame& frame, const StripMap& s, ImVec2 origin) {
  const StageInfo& stage = core::attention::info(s.map.stage);
  const core::attention::StageMatrix& numbers = stage.matrix(frame.shown.trace, s.map.head);
  const auto& f = frame.fonts;
  ImFont* title = frame.metrics.compact ? f.sans16 : f.sans17;
  ImFont* formula = frame.metrics.compact ? f.sans13 : f.sans14;
  const auto lowered = [&](ImFont* small) { return widgets::baseline_drop(title, small); };
  ImVec2 at{origin.x + s.title.x, origin.y + s.title.y};
  draw_stage_title(frame, std::string("strip/title/") + stage.name, s.map.stage, title, at);
  at.x += widgets::text_width(title, stage.title) + frame.metrics.px(10);
  const std::string words = formula_of(stage, frame.shown.model, frame.metrics.compact);
  if (!words.empty())
    at.x +=
        widgets::draw_formula(formula, {at.x, at.y + lowered(formula)}, packed(frame.palette.dim), words) +
        frame.metrics.px(10);
  const std::string shape = core::text::shape_text(numbers.n_rows(), numbers.n_cols());
  widgets::draw_text(f.mono12, {at.x, at.y + lowered(f.mono12)}, widgets::Align::left_top,
                     packed(frame.palette.faint), shape);
  at.x += widgets::text_width(f.mono12, shape) + frame.metrics.px(10);
  if (const std::string group = group_words(frame, s.map.stage); !group.empty()) {
    const float top = at.y + lowered(f.sans13), width = widgets::text_width(f.sans13, group);
    widgets::draw_text(f.sans13, {at.x, top}, widgets::Align::left_top, packed(frame.palette.dim), group);
    frame.landmarks.mark(std::string("strip/group/") + stage.name, {at.x, top},
                         {at.x + width, top + platform::font_size(f.sans13)});
    at.x += width + frame.metrics.px(10);
  }
  if (has_turning(frame, s.map.stage))
    draw_way_to_positions(frame, s.map.stage, {at.x, at.y + platform::font_size(title) / 2},
                          origin.x + s.title.x + s.width);
  if (s.map.stage == Stage::dropout_mask)
    draw_way_to_laboratory(frame, {at.x, at.y + platform::font_size(title) / 2},
                           origin.x + s.title.x + s.width);
}

/// Thin arrows between neighbours, where there is room and one leads to the other.
void draw_arrow_between(const Frame& frame, const StripMap& a, const StripMap& b, ImVec2 origin) {
  const bool siblings = (core::attention::info(b.map.stage).line == 1 && b.map.stage != Stage::queries) ||
                        a.map.stage == Stage::key_embeddings || b.map.stage == Stage::position_bias;
  const float from = origin.x + a.title.x + a.map.label_width + static_cast<float>(a.map.width) +
                     (a.map.bar_beside ? widgets::bar_room(frame, a.map) : 0) +
                     a.map.gutter_width * static_cast<float>(widgets::gutter_count(a.map.stage)) +
                     frame.metrics.px(4);
  const float to = origin.x + b.title.x - frame.metrics.px(frame.metrics.compact ? 0 : 3);
  if (siblings || to - from < frame.metrics.px(10)) return;
  const float y = origin.y + a.labels.y + widgets::column_label_height(frame, a.map) +
                  static_cast<float>(a.map.height) / 2;
  widgets::draw_arrow(ImGui::GetWindowDrawList(), {from, y}, {std::min(to, from + frame.metrics.px(90)), y},
                      packed(frame.palette.faint), frame.metrics.px(6));
}

bool is_folded(const Frame& frame, const StageInfo& stage) {
  return stage.present(frame.shown.model) && frame.shown.look.folded.contains(stage.stage);
}

/// Whether any stage was folded away; small windows keep silent about those that are from the beginning.
bool has_folded(const Frame& frame) {
  const auto counts = [&](const StageInfo& stage) {
    const bool from_the_beginning = stage.stage == Stage::mask || stage.stage == Stage::row_sums;
    return is_folded(frame, stage) && !(frame.metrics.compact && from_the_beginning);
  };
  return std::ranges::any_of(core::attention::stages(), counts);
}

/// The stages that were folded away, each a link that brings it back; returns where the line ends.
float draw_folded(const Frame& frame, ImVec2 origin, float width, float y) {
  if (!has_folded(frame)) return y;
  const float middle = origin.y + y + frame.metrics.px(folded_height) / 2;
  float x = origin.x;
  ImFont* font = frame.fonts.sans13;
  for (const StageInfo& stage : core::attention::stages()) {
    if (!is_folded(frame, stage)) continue;
    if (x == origin.x) {
      widgets::draw_text(font, {x, middle}, widgets::Align::left_middle, packed(frame.palette.faint),
                         "folded:");
      x += widgets::text_width(font, "folded:") + frame.metrics.px(10);
    }
    if (x + widgets::text_width(font, stage.title) > origin.x + width) break;  // the View menu has them all
    if (widgets::link(frame, std::string("strip/unfold/") + stage.name, font, {x, middle},
                      widgets::Align::left_middle, frame.palette.accent, stage.title))
      frame.commands.add(FoldStage{stage.stage, false});
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("Shows this stage in the strip again");
    x += widgets::text_width(font, stage.title) + frame.metrics.px(14);
  }
  return y + frame.metrics.px(folded_height);
}

/// The stage with its title, labels and bar, whose low end may stick out at the left, for lessons.
void mark_block(const Frame& frame, const StripMap& s, ImVec2 origin) {
  const bool below = s.map.show_bar && !s.map.bar_beside;
  const float low_end = below ? widgets::text_width(frame.fonts.mono12, "−00.00") + frame.metrics.px(5) : 0;
  const float left = origin.x + s.title.x, top = origin.y + s.title.y;
  const float bottom = origin.y + s.labels.y + widgets::column_label_height(frame, s.map) +
                       static_cast<float>(s.map.height) +
                       (below ? widgets::bar_room(frame, s.map) : frame.metrics.px(6));
  frame.landmarks.mark(std::string("block/") + core::attention::info(s.map.stage).name,
                       {left - std::max(0.0f, low_end - s.map.label_width), top}, {left + s.width, bottom});
}

/// A model that was just opened is seen from its beginning.
void begin_at_top(const Frame& frame) {
  const ImGuiID here = ImGui::GetID("document");
  const int document =
      static_cast<int>(ImGui::GetID((frame.document.title + "/" + frame.document.preset).c_str()));
  if (ImGui::GetStateStorage()->GetInt(here, document) != document) {
    ImGui::SetScrollX(0);
    ImGui::SetScrollY(0);
  }
  ImGui::GetStateStorage()->SetInt(here, document);
}

}  // namespace

void draw_stages(const Frame& frame) {
  begin_at_top(frame);
  if (frame.shown.look.large && core::attention::info(*frame.shown.look.large).present(frame.shown.model))
    return draw_large(frame);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  // What fits must not depend on whether there is a scrollbar.
  const float padding = origin.x - ImGui::GetWindowPos().x + ImGui::GetScrollX();
  const float width = std::floor(ImGui::GetWindowWidth() - 2 * padding - ImGui::GetStyle().ScrollbarSize);
  const float below = has_folded(frame) ? frame.metrics.px(folded_height) : 0;
  const std::vector<StripRow> rows = lay_out_strip(frame, width, room.y - below);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    draw_heading(frame, rows[r], origin);
    if (r > 0) draw_return(frame, rows[r - 1], rows[r], origin, width);
    for (std::size_t k = 0; k < rows[r].maps.size(); ++k) {
      const StripMap& s = rows[r].maps[k];
      draw_title(frame, s, origin);
      if (k > 0) draw_arrow_between(frame, rows[r].maps[k - 1], s, origin);
      widgets::draw_heatmap(frame, s.map, {origin.x + s.labels.x, origin.y + s.labels.y});
      handle_stage(frame, s.map.stage);
      mark_block(frame, s, origin);
    }
  }
  const float bottom = draw_folded(frame, origin, width, rows.empty() ? 0 : rows.back().bottom);
  platform::move_to(origin);
  float widest = 1;
  for (const StripRow& row : rows) widest = std::max(widest, row.maps.back().title.x + row.maps.back().width);
  if (widest > width) frame.landmarks.mark("strip/wider", origin, {origin.x + widest, origin.y + bottom});
  ImGui::Dummy({widest > width ? widest : 1, std::max(1.0f, bottom)});
}

}  // namespace app::panels
