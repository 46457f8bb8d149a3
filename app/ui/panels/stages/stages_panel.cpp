#include "app/ui/panels/stages/stages_panel.hpp"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/menus/menus.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"
#include "core/base/text.hpp"
#include "core/editing/edit.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/words.hpp"

namespace app::panels {

namespace {

/// Link from the title of the dropout mask to the dropout laboratory.
constexpr const char* laboratory_link = "laboratory";
/// Link from the titles of the strip to the RoPE view.
constexpr const char* rope_link = "as arrows";

void toggle_large(const Frame& frame, Stage stage) {
  frame.commands.add(
      set<&Look::large>(frame.pending.look.large == stage ? std::nullopt : std::optional(stage)));
}

}  // namespace

void draw_stage_title(const Frame& frame, const std::string& name, Stage stage, ImFont* font, ImVec2 at,
                      const char* prefix) {
  const std::string words = prefix + stage_title(frame, stage);
  draw_text(font, at, Align::left_top, frame.palette.text, words);
  const ImVec2 size{text_width(font, words), platform::font_size(font) + 2};
  const char* remark = frame.displayed.look.large ? "A click goes back to all stages."
                                                  : "Click to show it large; right-click for more.";
  if (title_item(frame, name, stage, {std::round(at.x), std::round(at.y)}, size, remark))
    toggle_large(frame, stage);
  draw_stage_menu(frame, "title", stage, frame.displayed.look.head);
}

void handle_stage(const Frame& frame, Stage stage) {
  if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left))
    toggle_large(frame, stage);
}

namespace {

/// Returns the heads that share a stage's matrix: "group 0 (heads 0, 1)"; "" if none do.
std::string group_words(const Frame& frame, Stage stage) {
  const auto& model = frame.displayed.model;
  const bool shared = core::attention::n_matrices(model, stage) < model.n_heads;
  return shared ? head_words(model, stage, frame.displayed.look.head) : "";
}

using core::attention::Columns;
using core::attention::StageInfo;

constexpr std::size_t no_numbers = digit_levels.size();

/// A stage without effect: a short label next to the previous map, which enables it.
struct Pill {
  const StageInfo* stage;
  const char *words, *help;
  core::editing::Edit enable_edit;
};

/// One stage of the strip with its measures, and its position relative to the strip's corner. The measures
/// are the largest of all heads, so that no map moves when another head is chosen.
struct StageBlock {
  const StageInfo* stage = nullptr;
  std::size_t rows = 0, columns = 0;
  bool square = false;                   ///< one column per token
  bool is_main = false;                  ///< the largest map of its line
  std::array<float, no_numbers> cell{};  ///< width of a cell with numbers, by their digit_levels
  float names = 0, indices = 0;          ///< room for labels with names, or with indices alone
  float gutters_width = 0;               ///< right of the cells
  float vertical_bar_width = 0;          ///< of a bar right of the cells; 0: it can only be below
  bool own_names = false;                ///< its rows are not the tokens of the previous map
  bool starts_row = false;               ///< even if there is room in the previous row
  std::vector<Pill> pills;
  float min_title_width = 0;  ///< minimum width of the title: its name, group and pills
  std::size_t digits = no_numbers;
  float picture = 0;  ///< width of all cells
  bool named = false;
  Heatmap map;
  ImVec2 title, labels;  ///< top left of the title's text and of the labels above the picture
  float title_end = 0;
  std::string code;  ///< its line of PyTorch, if displayed
  ImVec2 code_at;    ///< top left of that line

  bool can_have_numbers() const { return cell.front() > 0; }
  bool has_numbers() const { return digits < no_numbers; }
  float margin_width() const { return gutters_width + (map.has_vertical_bar ? vertical_bar_width : 0); }
  float width(float cells) const {
    return std::max(map.label_width + cells + margin_width(), min_title_width);
  }
  float width() const { return width(picture); }
};

/// A row of maps; a line of the strip may need several.
struct StageRow {
  int line = 1;               ///< 1 … 4
  bool first = true;          ///< whether the line's heading is above it
  float heading = 0;          ///< y of the heading, or of the return arrow
  float top = 0, bottom = 0;  ///< of the whole row
  std::vector<StageBlock> blocks;
};

// At scale 1.
constexpr float min_cell_height = 17, max_cell_height = 40, max_cell_width = 64, min_cell_width = 20;
constexpr float plain_cell = 13, min_plain_cell = 8, pill_height = 18, code_height = 17, code_inset = 8;
constexpr float max_map_width = 420, min_picture_width = 40;

constexpr float min_strip_of_pairs = 640;  // at scale 1; in narrower ones a map may have a row of its own
constexpr std::size_t max_columns_with_one_decimal = 8;  // of maps that keep a line for three
constexpr std::size_t first_of_two_decimals = 2, end_of_two_decimals = 5;  // in digit_levels

constexpr std::size_t max_columns_beside_weights = 8;  // of context vectors

constexpr std::size_t max_numbered_rows = 32, max_numbered_columns = 32,
                      max_vertical_bar_columns = 16;  // of a map with its bar at the right

constexpr const char* contexts_are_output = "One head: also the output";

/// Returns whether the output repeats the context vectors.
bool output_is_contexts(const core::attention::Model& m) {
  return m.n_heads == 1 && m.heads_off.empty() && m.merge == core::attention::CombineRule::concatenate &&
         m.bugs.empty() && !(m.projections && m.projections->output);
}

/// Returns the pill of a stage without effect, or nothing.
std::optional<Pill> pill_of(const Frame& frame, const StageInfo& stage) {
  const auto& m = frame.displayed.model;
  const auto is_here = [&](const auto& cell) { return cell.place.stage == stage.stage; };
  if (m.given.find(stage.stage) || std::ranges::any_of(m.given.cells, is_here)) return std::nullopt;
  if (const auto& pinned = frame.displayed.selection.pinned; pinned && pinned->stage == stage.stage)
    return {};
  if (frame.lesson) {  // which may refer to it
    const auto& focus = frame.lesson->shown().focus;
    if (std::ranges::find(focus, std::string("strip/") + stage.name) != focus.end()) return std::nullopt;
  }
  switch (stage.stage) {
    case Stage::dropout_mask:
    case Stage::dropped_weights:
      if (m.dropout.active() || m.dropout.place != core::attention::DropoutPlace::weights) return {};
      if (m.dropout.rate > 0)
        return Pill{&stage, "Dropout off", "Evaluation mode: no weight is dropped. Click for training mode.",
                    core::editing::SetTraining{true}};
      return Pill{&stage, "Dropout off", "The dropout rate is 0. Click to set it to 0.5.",
                  core::editing::SetDropoutRate{0.5}};
    case Stage::scaled_scores:
      if (m.scale.rule != core::attention::ScaleRule::none) return {};
      return Pill{&stage, "Scale 1", "The scores are not scaled. Click to divide them by √d_head.",
                  core::editing::SetScale{{}}};
    case Stage::masked_scores:
      if (m.mask.causal || m.mask.masks_keys()) return {};
      return Pill{&stage, "No mask", "Every query attends to every key. Click for the causal mask.",
                  core::editing::SetCausal{true}};
    case Stage::concatenated: {
      if (m.n_heads > 1 || m.d_value() < 2) return {};
      std::size_t heads = 2;
      while (m.d_value() % heads != 0) ++heads;
      return Pill{&stage, output_is_contexts(m) ? contexts_are_output : "One head: not concatenated",
                  "The output takes the context vectors as they are. Click for more heads.",
                  core::editing::SetHeadCount{heads}};
    }
    case Stage::output:
      if (!output_is_contexts(m)) return {};
      return Pill{&stage, contexts_are_output,
                  "There is no output projection: the output is the context vectors. Click for one.",
                  core::editing::SetOutputProjection{true}};
    default:
      return std::nullopt;
  }
}

/// Returns the width in a title of the group and of the link to the RoPE view or the laboratory.
float group_width(const Frame& frame, Stage stage) {
  const std::string words = group_words(frame, stage);
  const char* link_text = has_rope_view(frame, stage)                              ? rope_link
                          : stage == Stage::dropout_mask && !frame.metrics.compact ? laboratory_link
                                                                                   : "";
  const float gap = frame.metrics.px(10);
  return (*link_text ? text_width(frame.fonts.sans13, link_text) + gap : 0) +
         (words.empty() ? 0 : text_width(frame.fonts.sans13, words) + gap);
}

ImFont* title_font(const Frame& frame) {
  return frame.metrics.compact ? frame.fonts.sans16 : frame.fonts.sans17;
}

float pill_width(const Frame& frame, const Pill& pill) {
  return text_width(frame.fonts.sans12, pill.words) + frame.metrics.px(8 + 8 + 6 + 8);
}

/// Returns what the title of a map of gradients begins with.
const char* title_prefix(const StageBlock& b) {
  return b.map.of_gradient ? "∂ " : "";
}

float min_title_width(const Frame& frame, const StageBlock& b) {
  float width = text_width(title_font(frame), title_prefix(b) + stage_title(frame, b.stage->stage)) +
                group_width(frame, b.stage->stage);
  for (const Pill& pill : b.pills) width += pill_width(frame, pill) + frame.metrics.px(8);
  return width;
}

/// Returns the width of the widest name of a token, at most that of a label.
float widest_name(const Frame& frame) {
  const core::attention::Sequence& sequence = frame.displayed.sequence();
  float widest = 0;
  for (const auto* names : {&sequence.tokens, &sequence.keys()})
    for (std::size_t i = 0; i < std::min<std::size_t>(names->size(), 512); ++i)
      widest = std::max(widest, text_width(frame.fonts.sans13, visible_token((*names)[i])));
  return std::min(std::ceil(widest), frame.metrics.px(64));
}

StageBlock measure(const Frame& frame, const StageInfo& stage, float index, float name, bool of_gradient) {
  const auto& m = frame.metrics;
  const auto& model = frame.displayed.model;
  StageBlock b;
  b.stage = &stage;
  const auto shape = core::attention::shape_of(model, stage.stage);
  b.rows = shape.n_rows, b.columns = shape.n_cols;
  b.square = stage.columns == Columns::tokens;
  b.own_names = model.has_key_embeddings() && stage.rows == core::attention::RowTokens::keys &&
                stage.stage != Stage::values;
  b.names = std::max(index + m.px(13) + name, m.px(46));
  b.indices = index + m.px(10);
  b.map.place = std::string(of_gradient ? "strip/d_" : "strip/") + stage.name;
  b.map.stage = stage.stage;
  b.map.of_gradient = of_gradient;
  b.map.show_bar = stage.columns != Columns::single;
  b.map.has_vertical_bar = !b.square && b.rows <= max_numbered_rows && b.columns <= max_vertical_bar_columns;
  // Large stages are not read to measure the width of their numbers, as this is done for every head.
  const bool has_numbers = b.rows <= max_numbered_rows && b.columns <= max_numbered_columns;
  const std::size_t n =
      stage.per_head ? std::max<std::size_t>(1, core::attention::n_matrices(model, stage.stage)) : 1;
  for (std::size_t k = 0; has_numbers && k < n; ++k) {
    b.map.head = k * (stage.per_head ? model.n_heads / n : 1);
    OtherNumbers gradient;
    if (of_gradient) gradient = gradient_numbers(frame, stage.stage, b.map.head), b.map.other = &gradient;
    if (b.map.has_vertical_bar) b.vertical_bar_width = std::max(b.vertical_bar_width, bar_room(frame, b.map));
    b.map.other = nullptr;
    const DigitNeeds needs = digit_needs(frame, stage.stage, b.map.head, of_gradient);
    b.map.keeps_zero = b.map.keeps_zero || !needs.has_bare;
    for (std::size_t d = 0; d < no_numbers; ++d)
      b.cell.at(d) = std::max(b.cell.at(d), cell_width_for(frame, needs, digit_levels.at(d)));
  }
  b.map.head = frame.displayed.look.head;
  if (frame.displayed.look.code_lines.contains(stage.stage))
    b.code = core::graph::code_line(frame.displayed.graph, model, stage.stage);
  if (frame.displayed.look.gutters && b.square) {
    b.map.gutter_width = m.px(42);
    b.gutters_width = m.px(42) * static_cast<float>(gutter_count(stage.stage));
  }
  return b;
}

float gap_before(const Frame& frame, std::span<const StageBlock> blocks, std::size_t k) {
  const bool after_embeddings = blocks[k - 1].stage->stage == Stage::embeddings;
  return frame.metrics.px(after_embeddings ? 30 : 14);  // at least: spare width is divided between the gaps
}

/// Returns the displayed stages, by line; a stage without effect is a pill of the previous map.
std::array<std::vector<StageBlock>, 4> stage_lines(const Frame& frame) {
  const core::attention::Sequence& sequence = frame.displayed.sequence();
  const std::size_t n = std::max(sequence.tokens.size(), sequence.keys().size());
  const float index = text_width(frame.fonts.mono12, std::to_string(n - 1));
  const float name = widest_name(frame);
  const bool normed = frame.displayed.has(Stage::normed_queries);
  std::array<std::vector<StageBlock>, 4> lines;
  StageBlock* before = nullptr;
  for (const StageInfo& stage : core::attention::stages()) {
    if (!frame.displayed.has(stage.stage) || frame.displayed.look.folded.contains(stage.stage)) continue;
    if (auto pill = before ? pill_of(frame, stage) : std::nullopt) {
      if (before->pills.empty() || before->pills.back().words != pill->words)
        before->pills.push_back(*std::move(pill));
      continue;
    }
    auto line = static_cast<std::size_t>(stage.line - 1);
    const bool alone = lines[2].size() == 1 && lines[2].front().stage->stage == Stage::weights;
    if (stage.stage == Stage::contexts && alone) line = 2;  // next to the weights, then the largest map
    // The stage of the pinned cell is a pair, so that its values stay in sight.
    const std::optional<CellRef>& pinned = frame.displayed.selection.pinned;
    const bool has_gradient = shows_gradient(frame, stage.stage),
               has_value = !has_gradient || frame.displayed.look.gradient.maps == GradientMaps::both ||
                           (pinned && pinned->stage == stage.stage);
    for (const bool of_gradient : {false, true}) {
      if (!(of_gradient ? has_gradient : has_value)) continue;
      StageBlock b = measure(frame, stage, index, name, of_gradient);
      const bool is_first = of_gradient != has_value;
      b.starts_row =
          is_first &&
          (stage.stage == Stage::normed_queries || (stage.stage == Stage::rotated_queries && !normed) ||
           (stage.stage == Stage::contexts && alone && b.columns > max_columns_beside_weights));
      b.is_main = (stage.stage == Stage::weights && lines[2].empty()) || stage.stage == Stage::output;
      lines.at(line).push_back(std::move(b));
      before = &lines.at(line).back();
    }
  }
  if (lines[2].size() > 1 && lines[2][1].square) lines[2].front().is_main = false;
  for (auto& line : lines)
    for (StageBlock& b : line) b.min_title_width = min_title_width(frame, b);
  return lines;
}

/// What surrounds the maps of a row; digits come first, so these give way in this order.
struct RowForm {
  bool names = true;          ///< of tokens, left of every map
  bool vertical_bars = true;  ///< right of the maps that can have one
  bool indices = true;        ///< left of token × token maps after the first
};

constexpr std::array row_forms{RowForm{}, RowForm{false}, RowForm{false, false},
                               RowForm{false, false, false}};

/// Returns the preferred width of all cells of a block without numbers.
float preferred_width(const Frame& frame, const StageBlock& b, bool has_squares) {
  const auto n = static_cast<float>(b.columns);
  if (b.square) return std::min(n * frame.metrics.px(plain_cell), frame.metrics.px(max_map_width));
  const float all = n * frame.metrics.px(b.columns <= 16 ? 36 : plain_cell);
  return has_squares ? std::min(all, frame.metrics.px(160)) : all;
}

float min_width(const Frame& frame, const StageBlock& b) {
  const auto n = static_cast<float>(b.columns);
  const float cells = b.square
                          ? std::min(n * frame.metrics.px(min_plain_cell), frame.metrics.px(150))
                          : std::min(n * frame.metrics.px(plain_cell), frame.metrics.px(min_picture_width));
  return std::max(cells, b.min_title_width - b.map.label_width - b.margin_width());
}

/// Rounds a width to whole-pixel cells, if their edges are distinguishable.
float whole_cells(float width, std::size_t n) {
  return static_cast<float>(cells_length(width, n, FLT_MAX, 4));
}

/// Sets the digits and the widths of the pictures; returns false if they do not fit.
bool fit(const Frame& frame, std::span<StageBlock> row, std::size_t digits, float width,
         const RowForm& form) {
  float left = width, extra_wanted = 0;  // beyond the minimum of each picture
  const bool squares = std::ranges::any_of(row, &StageBlock::square);
  for (std::size_t k = 0; k < row.size(); ++k) {
    StageBlock& b = row[k];
    b.digits = b.can_have_numbers() ? digits : no_numbers;
    b.named = k == 0 || form.names || b.own_names;
    b.map.label_width = b.named ? b.names : form.indices || !b.square ? b.indices : 0;
    b.map.has_vertical_bar = form.vertical_bars && b.vertical_bar_width > 0;
    left -= b.map.label_width + b.margin_width() + (k > 0 ? gap_before(frame, row, k) : 0);
    if (b.has_numbers()) {
      b.picture = std::max(scaled_with_text(frame, min_cell_width), b.cell.at(b.digits)) *
                  static_cast<float>(b.columns);
      left -= b.width() - b.map.label_width - b.margin_width();
    } else {
      b.picture = min_width(frame, b);
      extra_wanted += std::max(0.0f, preferred_width(frame, b, squares) - b.picture);
      left -= b.picture;
    }
  }
  if (left < 0) return false;
  const float share = extra_wanted > 0 ? std::min(1.0f, left / extra_wanted) : 1;
  for (StageBlock& b : row)
    if (!b.has_numbers())
      b.picture = whole_cells(
          b.picture + std::max(0.0f, preferred_width(frame, b, squares) - b.picture) * share, b.columns);
  return true;
}

/// Returns the picture's width if cells with numbers, of the main or the other maps, are at least that wide.
float widened(const StageBlock& b, bool main, float cell) {
  const bool changes = b.has_numbers() && b.is_main == main;
  return changes ? std::max(b.picture, cell * static_cast<float>(b.columns)) : b.picture;
}

float used_width(const Frame& frame, std::span<const StageBlock> row, bool main = true, float cell = 0) {
  float used = 0;
  for (std::size_t k = 0; k < row.size(); ++k)
    used += row[k].width(widened(row[k], main, cell)) + (k > 0 ? gap_before(frame, row, k) : 0);
  return used;
}

/// Widens cells with numbers up to the width of the row, those of the main map first.
void widen(const Frame& frame, std::span<StageBlock> row, float width) {
  // In a very wide strip cells of 64 would leave a third of it empty.
  const float widest = std::clamp(width / 12, scaled_with_text(frame, max_cell_width),
                                  scaled_with_text(frame, max_cell_width * 1.5f));
  for (const bool main : {true, false}) {
    float cell = main || !frame.metrics.compact ? std::floor(widest) : scaled_with_text(frame, 48);
    while (cell > 0 && used_width(frame, row, main, cell) > width) --cell;
    for (StageBlock& b : row) b.picture = widened(b, main, cell);
  }
}

/// Divides blocks among rows of that many; nothing if they do not fit with those digits.
std::optional<std::vector<std::vector<StageBlock>>> divided(const Frame& frame,
                                                            std::span<const StageBlock> line,
                                                            std::size_t each, std::size_t digits,
                                                            float width) {
  std::vector<std::vector<StageBlock>> rows;
  for (std::size_t k = 0; k < line.size(); k += each) {
    const auto part = line.subspan(k, std::min(each, line.size() - k));
    std::vector<StageBlock>& row = rows.emplace_back(part.begin(), part.end());
    const auto fits = [&](const RowForm& form) { return fit(frame, row, digits, width, form); };
    const auto* const form = std::ranges::find_if(row_forms, [&](const RowForm& f) {
      return !(f.names && frame.metrics.compact && row.size() > 1) && fits(f);
    });
    if (form == row_forms.end() && part.size() > 1) return std::nullopt;
    if (form == row_forms.end() && digits < no_numbers) return std::nullopt;
    widen(frame, row, width);
  }
  return rows;
}

/// Breaks blocks that belong together into rows of at most four. All have the same digits, except wide ones
/// next to others, which have none; before the second decimal goes, a row takes fewer maps.
std::vector<std::vector<StageBlock>> break_into_rows(const Frame& frame, std::span<const StageBlock> blocks,
                                                     float width) {
  std::vector<StageBlock> line(blocks.begin(), blocks.end());
  const auto is_wide = [](const StageBlock& b) { return !b.square && b.columns > max_vertical_bar_columns; };
  if (!std::ranges::all_of(line, is_wide))
    for (StageBlock& b : line)
      if (is_wide(b)) b.cell = {};
  const std::size_t n = line.size(), min_rows = (n + 3) / 4;
  const bool is_narrow = width < frame.metrics.px(min_strip_of_pairs);
  const auto n_squares = static_cast<std::size_t>(std::ranges::count_if(line, &StageBlock::square));
  const bool are_alike = n_squares == 0 || n_squares == n;
  const std::size_t max_rows = std::max(min_rows, is_narrow || !are_alike ? n : (n + 1) / 2);
  const bool has_numbers = std::ranges::any_of(line, &StageBlock::can_have_numbers);
  const auto with_digits = [&](std::size_t n_rows, std::size_t from, std::size_t to) {
    std::optional<std::vector<std::vector<StageBlock>>> rows;
    for (std::size_t d = from; has_numbers && d < to && !rows; ++d)
      rows = divided(frame, line, (n + n_rows - 1) / n_rows, d, width);
    return rows;
  };
  const bool are_few = !is_narrow && n <= 3 && std::ranges::all_of(line, [](const StageBlock& b) {
    return b.square && b.columns <= max_columns_with_one_decimal;
  });
  for (std::size_t n_rows = min_rows; frame.settings.pytorch_numbers && n_rows <= n; ++n_rows)
    if (auto rows = with_digits(n_rows, 0, 1)) return *rows;
  // More rows than in a wider window must not mean more decimals than there.
  for (std::size_t n_rows = min_rows; n_rows <= max_rows; ++n_rows)
    if (auto rows = with_digits(n_rows, n_rows > min_rows ? first_of_two_decimals : 0,
                                are_few ? no_numbers : end_of_two_decimals))
      return *rows;
  if (auto rows = with_digits(max_rows, end_of_two_decimals, no_numbers)) return *rows;
  for (std::size_t n_rows = min_rows;; ++n_rows)
    if (auto rows = divided(frame, line, (n + n_rows - 1) / n_rows, no_numbers, width)) return *rows;
}

/// Returns the height of a row's cells together, if cells of the main map are `square` high.
float rows_height(const Frame& frame, const std::vector<StageBlock>& row, float square) {
  const auto n_rows = static_cast<float>(row.front().rows);
  const bool numbers = std::ranges::any_of(row, &StageBlock::has_numbers);
  const bool main = std::ranges::any_of(row, [](const StageBlock& b) { return b.is_main && b.square; });
  if (row.front().rows <= max_numbered_rows) {
    const float least = scaled_with_text(frame, numbers ? 15 : min_plain_cell);
    const float each = main      ? square
                       : numbers ? square * 0.78f
                                 : std::min(square * 0.53f, scaled_with_text(frame, plain_cell));
    return std::max(least, std::round(each)) * n_rows;
  }
  float widest = 0;
  for (const StageBlock& b : row)
    if (b.square) widest = std::max(widest, b.picture);
  return whole_cells(widest > 0 ? widest : frame.metrics.px(220), row.front().rows);
}

/// Positions all rows and maps; returns the total height.
float place(const Frame& frame, std::vector<StageRow>& rows, float width, float square) {
  const bool compact = frame.metrics.compact;
  const auto px = [&](float length) { return scaled_with_text(frame, length); };
  float y = 0;
  for (StageRow& row : rows) {
    row.heading = y + px(compact ? 6 : 10);
    y += px(compact ? (row.line == 1 && row.first ? 2 : 13) : 26);
    row.top = y;
    float bottom = y, highest = 0, code_top = 0;
    const float height = rows_height(frame, row.blocks, square);
    for (StageBlock& b : row.blocks) {
      b.map.width = static_cast<int>(b.picture);
      // Encoder states are more or fewer rows of the same height.
      b.map.height = static_cast<int>(
          std::round(height * static_cast<float>(b.rows) / static_cast<float>(row.blocks.front().rows)));
      b.map.digits = b.digits;
      b.map.show_numbers = b.has_numbers();
      b.map.row_tokens = b.named;
      b.map.columns = !compact || (b.is_main && b.square) ? ColumnLabels::tokens : ColumnLabels::indices;
      highest = std::max(highest, column_label_height(frame, b.map));
    }
    const float spare = std::max(0.0f, width - used_width(frame, row.blocks));
    const bool grouped = row.line == 1 && row.first && row.blocks.size() > 2;  // keeps Q, K and V together
    float x = 0;
    for (std::size_t k = 0; k < row.blocks.size(); ++k) {
      StageBlock& b = row.blocks[k];
      if (k > 0) {
        const auto others = static_cast<float>(row.blocks.size() - 1);
        const float share = grouped ? (k == 1 ? 0.5f : 0.5f / (others - 1)) : 1.0f / others;
        x += gap_before(frame, row.blocks, k) +
             std::floor(std::min(spare * share, px(grouped && k > 1 ? 60 : 120)));
        row.blocks[k - 1].title_end = x - px(8);
      }
      b.title = {x, y};
      const float above = y + px(compact ? 20 : 21);
      b.labels = {x, above + highest - column_label_height(frame, b.map)};
      const float picture_bottom = above + highest + static_cast<float>(b.map.height);
      const bool bar_below = b.map.show_bar && !b.map.has_vertical_bar;
      code_top = std::max(code_top, picture_bottom + px(!bar_below ? 6 : 20));
      bottom = std::max(bottom, picture_bottom + px(!bar_below ? 8 : compact ? 22 : 26));
      x += b.width();
      b.title_end = std::max(x, width);
    }
    for (StageBlock& b : row.blocks) {  // one below the other, as long as they need
      if (b.code.empty()) continue;
      const float over = width - text_width(frame.fonts.mono12, b.code) - 2 * px(code_inset);
      b.code_at = {std::max(0.0f, std::min(b.title.x + b.map.label_width, over)), code_top};
      code_top += px(code_height + 2);
      bottom = std::max(bottom, code_top + px(2));
    }
    row.bottom = bottom;
    y = bottom + px(compact ? 4 : 6);
  }
  return y;
}

bool has_weights(const std::vector<StageBlock>& blocks) {
  return std::ranges::any_of(blocks, [](const StageBlock& b) { return b.stage->stage == Stage::weights; });
}

/// Moves the weights next to the masked scores if only two token × token maps with numbers share a row, and
/// the context vectors to those of all heads.
void pair_weights(const Frame& frame, std::array<std::vector<StageBlock>, 4>& lines, float width) {
  auto& scores = lines[1];
  auto& weights = lines[2];
  if (scores.size() % 2 == 0 || weights.empty() || !has_weights({weights.front()})) return;
  if (weights.size() > 1 && weights[1].square) return;
  const auto rows = break_into_rows(frame, scores, width);
  if (rows.front().size() != 2 || !rows.front().front().has_numbers()) return;
  weights.front().is_main = false;
  scores.push_back(std::move(weights.front()));
  lines[3].insert(lines[3].begin(), weights.begin() + 1, weights.end());
  weights.clear();
}

/// Returns possible ends of the first screen: of the whole strip, else below the title that follows the
/// weights, else below the weights.
std::array<float, 3> screen_ends(const Frame& frame, const std::vector<StageRow>& rows, float end) {
  const auto row = std::ranges::find_if(rows, [](const StageRow& r) { return has_weights(r.blocks); });
  if (row == rows.end()) return {end, end, end};
  return {end, row + 1 == rows.end() ? end : (row + 1)->top + scaled_with_text(frame, 22), row->bottom};
}

/// Lays out all displayed stages in the given width; cells grow until the strip fills the height.
std::vector<StageRow> lay_out(const Frame& frame, float width, float height) {
  std::vector<StageRow> rows;
  auto lines = stage_lines(frame);
  pair_weights(frame, lines, width);
  for (std::size_t l = 0; l < lines.size(); ++l) {
    const auto& line = lines.at(l);
    for (std::size_t k = 0; k < line.size();) {
      std::size_t end = k + 1;
      while (end < line.size() && !line[end].starts_row) ++end;
      for (auto& blocks : break_into_rows(frame, std::span(line).subspan(k, end - k), width)) {
        const int number = has_weights(blocks) ? 3 : static_cast<int>(l) + 1;
        rows.push_back({.line = number,
                        .first = rows.empty() || rows.back().line != number,
                        .blocks = std::move(blocks)});
      }
      k = end;
    }
  }
  // The highest cells with which the first screen ends well; if none fit, the default ones.
  for (std::size_t k = 0; k < 3; ++k) {
    const auto fits = [&](float square) {
      return screen_ends(frame, rows, place(frame, rows, width, square)).at(k) <= height;
    };
    float low = scaled_with_text(frame, min_cell_height), high = scaled_with_text(frame, max_cell_height) + 1;
    if (!fits(low)) continue;
    while (high - low > 1) {
      const float middle = std::floor((low + high) / 2);
      (fits(middle) ? low : high) = middle;
    }
    place(frame, rows, width, low);
    return rows;
  }
  place(frame, rows, width, scaled_with_text(frame, frame.metrics.compact ? 19 : 24));
  return rows;
}

constexpr float folded_height = 20;  // of the line of folded stages, at scale 1

std::string heading(const Frame& frame, int line) {
  return core::explain::describe_line(frame.displayed, frame.displayed.look.head, line);
}

void draw_heading(const Frame& frame, const StageRow& row, ImVec2 origin) {
  if (frame.metrics.compact || !row.first) return;
  const float y = origin.y + row.heading;
  draw_text(frame.fonts.mono12, {origin.x, y}, Align::left_middle, frame.palette.faint,
            std::to_string(row.line));
  const std::string words = heading(frame, row.line);
  const ImVec2 at{origin.x + frame.metrics.px(18), y};
  draw_text(frame.fonts.sans14, at, Align::left_middle, frame.palette.dim, words);
  frame.landmarks.mark("strip/heading/" + std::to_string(row.line), {at.x, at.y - frame.metrics.px(8)},
                       {at.x + text_width(frame.fonts.sans14, words), at.y + frame.metrics.px(8)});
}

/// Draws the line from the end of one row back to the beginning of the next.
void draw_return(const Frame& frame, const StageRow& from, const StageRow& to, ImVec2 origin, float width) {
  const float right = origin.x + width - 1, y = origin.y + to.heading;
  const float top = origin.y + from.bottom - frame.metrics.px(3);
  const float words = frame.metrics.compact || !to.first
                          ? 0
                          : text_width(frame.fonts.sans14, heading(frame, to.line)) + frame.metrics.px(32);
  const ImU32 color = packed(frame.palette.strong_line);
  draw_rect({right - 1, top}, {right, y}, color);
  if (from.blocks.back().map.of_gradient && to.blocks.front().map.of_gradient) {
    draw_rect({origin.x + words, y}, {right, y + 1}, color);
    draw_arrow({right, top}, {right, top - frame.metrics.px(3)}, color, frame.metrics.px(6));
  } else {
    draw_arrow({right, y}, {origin.x + words, y}, color, frame.metrics.px(6));
  }
}

/// Draws a link after a title if there is room; returns whether it was pressed.
bool draw_title_link(const Frame& frame, const std::string& name, const char* words, const char* help,
                     ImVec2 at, float end) {
  ImFont* font = frame.fonts.sans13;
  if (at.x + text_width(font, words) > end) return false;
  return link(frame, name, font, at, Align::left_middle, frame.palette.accent, words, help);
}

/// Draws the line of PyTorch below a map.
void draw_code(const Frame& frame, const StageBlock& b, ImVec2 origin, float width) {
  if (b.code.empty()) return;
  const float inset = scaled_with_text(frame, code_inset), left = origin.x + b.code_at.x,
              top = origin.y + b.code_at.y, height = scaled_with_text(frame, code_height);
  const std::string words = shortened(frame.fonts.mono12, b.code, width - 2 * inset);
  const float right = left + text_width(frame.fonts.mono12, words) + 2 * inset;
  draw_rect({left, top}, {right, top + height}, frame.palette.background.raised, frame.metrics.px(3));
  draw_text(frame.fonts.mono12, {left + inset, top + height / 2}, Align::left_middle, frame.palette.dim,
            words);
  platform::move_to({left, top});
  if (hit_area((std::string("code ") + b.stage->name).c_str(), {right - left, height}))
    frame.commands.add(CopyText{b.code});
  frame.landmarks.mark_item(std::string("strip/code/") + b.stage->name);
  tooltip(b.code + "\nClick to copy it");
}

/// Draws a pill that ends at right; a click enables its stage.
void draw_pill(const Frame& frame, const Pill& pill, float right, float middle) {
  const Metrics& m = frame.metrics;
  const float width = pill_width(frame, pill), height = m.px(pill_height), side = m.px(8);
  const ImVec2 min{right - width, std::round(middle - height / 2)};
  platform::move_to(min);
  const std::string name = std::string("strip/pill/") + pill.stage->name;
  const bool pressed = hit_area(name.c_str(), {width, height});
  frame.landmarks.mark_item(name);
  const bool lit = ImGui::IsItemHovered() || ImGui::IsItemFocused();
  draw_rect(min, {right, min.y + height}, lit ? frame.palette.control.hovered : frame.palette.control.rest,
            m.px(3));
  const ImVec2 square{min.x + m.px(8), std::round(middle - side / 2)};
  draw_rect(square, {square.x + side, square.y + side},
            render::color_at(render::ColorMap::mask, frame.palette.dark, 1));
  draw_text(frame.fonts.sans12, {square.x + side + m.px(6), middle}, Align::left_middle,
            lit ? frame.palette.text : frame.palette.dim, pill.words);
  tooltip(pill.help);
  if (pressed) frame.commands.edit(pill.enable_edit);
}

/// Returns where the gradient of a stage comes from: "from Queries + Keys", the stages computed from it.
std::string gradient_sources(const Frame& frame, Stage stage) {
  if (stage == frame.displayed.look.gradient.of->stage) return "target";
  std::vector<std::string> readers;
  const auto add_readers = [&](const auto& self, Stage read) -> void {
    for (const core::graph::Node& node : frame.displayed.graph.nodes) {
      if (std::ranges::none_of(node.operation->inputs, [&](const core::graph::Input& input) {
            return input.stage() && *input.stage() == read;
          }))
        continue;
      if (core::graph::is_internal(node.stage))
        self(self, node.stage);
      else if (frame.displayed.has(node.stage))
        readers.push_back(stage_title(frame, node.stage));
    }
  };
  add_readers(add_readers, stage);
  return readers.empty() ? "" : "from " + core::text::joined(readers, " + ");
}

/// Makes a formula a button that shows and hides the line of code.
void add_code_switch(const Frame& frame, const StageInfo& stage, ImVec2 at, ImVec2 size) {
  platform::move_to(at);
  if (hit_area((std::string("formula ") + stage.name).c_str(), size)) {
    std::set<Stage> lines = frame.pending.look.code_lines;
    if (lines.erase(stage.stage) == 0) lines.insert(stage.stage);
    frame.commands.add(set<&Look::code_lines>(std::move(lines)));
  }
  frame.landmarks.mark_item(std::string("strip/formula/") + stage.name);
  tooltip("Click for the line of PyTorch that computes it");
}

/// Draws the title and, if there is room, the formula and the shape.
void draw_title(const Frame& frame, const StageBlock& s, ImVec2 origin) {
  const StageInfo& stage = *s.stage;
  const auto& f = frame.fonts;
  ImFont* title = title_font(frame);
  ImFont* formula = frame.metrics.compact ? f.sans13 : f.sans14;
  const auto lowered = [&](ImFont* small) { return baseline_drop(title, small); };
  ImVec2 at{origin.x + s.title.x, origin.y + s.title.y};
  const float middle = at.y + platform::font_size(title) / 2, gap = frame.metrics.px(10);
  float end = origin.x + s.title_end;
  const std::string name = std::string(s.map.of_gradient ? "d_" : "") + stage.name;
  draw_stage_title(frame, "strip/title/" + name, stage.stage, title, at, title_prefix(s));
  at.x += text_width(title, title_prefix(s) + stage_title(frame, stage.stage)) + gap;
  float right = std::min(end, std::max(at.x, origin.x + s.title.x + s.map.label_width + s.picture));
  for (const Pill& pill : s.pills) {
    right = std::max(right, at.x + pill_width(frame, pill));
    draw_pill(frame, pill, right, middle);
    end = right = right - pill_width(frame, pill) - frame.metrics.px(8);
  }
  const std::string words = s.map.of_gradient ? gradient_sources(frame, stage.stage)
                                              : stage_formula(frame, stage.stage, frame.metrics.compact);
  const float group = group_width(frame, stage.stage);
  if (const float width = formula_width(formula, words); !words.empty() && at.x + width + group <= end) {
    draw_formula(formula, {at.x, at.y + lowered(formula)}, frame.palette.dim, words);
    if (!s.map.of_gradient) add_code_switch(frame, stage, at, {width, platform::font_size(title)});
    at.x += width + gap;
  }
  const std::string shape = core::attention::torch_shape(frame.displayed.model, stage.stage);
  if (const float width = text_width(f.mono12, shape); at.x + width + group <= end) {
    draw_text(f.mono12, {at.x, at.y + lowered(f.mono12)}, Align::left_top, frame.palette.faint, shape);
    at.x += width + gap;
  }
  if (const std::string group_name = group_words(frame, stage.stage); !group_name.empty()) {
    const float top = at.y + lowered(f.sans13), width = text_width(f.sans13, group_name);
    draw_text(f.sans13, {at.x, top}, Align::left_top, frame.palette.dim, group_name);
    frame.landmarks.mark(std::string("strip/group/") + stage.name, {at.x, top},
                         {at.x + width, top + platform::font_size(f.sans13)});
    at.x += width + gap;
  }
  if (has_rope_view(frame, stage.stage) &&
      draw_title_link(frame, std::string("strip/positions/") + stage.name, rope_link,
                      "The rotary pairs of a query and a key, their angles and the score", {at.x, middle},
                      end))
    frame.commands.add(set<&Look::large>(stage.stage));
  if (stage.stage == Stage::dropout_mask &&
      draw_title_link(frame, "strip/laboratory", laboratory_link,
                      "Many masks, their mean, and its convergence", {at.x, middle}, end))
    perform("tab/laboratory", situation_of(frame), frame.commands);
}

/// Draws a thin arrow between neighbors, if there is room and one is computed from the other.
void draw_arrow_between(const Frame& frame, const StageBlock& a, const StageBlock& b, ImVec2 origin) {
  const bool siblings = (core::attention::info(b.map.stage).line == 1 && b.map.stage != Stage::queries) ||
                        a.map.stage == Stage::key_embeddings || b.map.stage == Stage::position_bias;
  const float from = origin.x + a.title.x + a.map.label_width + static_cast<float>(a.map.width) +
                     (a.map.has_vertical_bar ? bar_room(frame, a.map) : 0) +
                     a.map.gutter_width * static_cast<float>(gutter_count(a.map.stage)) + frame.metrics.px(4);
  const float to = origin.x + b.title.x - frame.metrics.px(frame.metrics.compact ? 0 : 3);
  const bool differ = a.map.of_gradient != b.map.of_gradient;
  if (siblings || differ || to - from < frame.metrics.px(10)) return;
  const float y =
      origin.y + a.labels.y + column_label_height(frame, a.map) + static_cast<float>(a.map.height) / 2;
  ImVec2 start{from, y}, end{std::min(to, from + frame.metrics.px(90)), y};
  if (b.map.of_gradient) std::swap(start, end);  // gradients flow back
  draw_arrow(start, end, packed(frame.palette.faint), frame.metrics.px(6));
}

bool is_folded(const Frame& frame, const StageInfo& stage) {
  return frame.displayed.has(stage.stage) && frame.displayed.look.folded.contains(stage.stage);
}

/// Returns whether any stage is folded; small windows ignore those that are folded by default.
bool has_folded(const Frame& frame) {
  const auto counts = [&](const StageInfo& stage) {
    const bool is_default = stage.stage == Stage::mask || stage.stage == Stage::row_sums;
    return is_folded(frame, stage) && !(frame.metrics.compact && is_default);
  };
  return std::ranges::any_of(core::attention::stages(), counts);
}

/// Draws the folded stages, each a link that unfolds it; returns the y where the line ends.
float draw_folded(const Frame& frame, ImVec2 origin, float width, float y) {
  if (!has_folded(frame)) return y;
  const float middle = origin.y + y + frame.metrics.px(folded_height) / 2;
  float x = origin.x;
  ImFont* font = frame.fonts.sans13;
  for (const StageInfo& stage : core::attention::stages()) {
    if (!is_folded(frame, stage)) continue;
    if (x == origin.x)
      x += draw_text(font, {x, middle}, Align::left_middle, frame.palette.faint, "hidden stages:") +
           frame.metrics.px(10);
    if (x + text_width(font, stage.title) > origin.x + width) break;  // the View menu has them all
    if (link(frame, std::string("strip/unfold/") + stage.name, font, {x, middle}, Align::left_middle,
             frame.palette.accent, stage.title, "Shows this stage in the strip again"))
      frame.commands.add(FoldStage{stage.stage, false});
    x += text_width(font, stage.title) + frame.metrics.px(14);
  }
  return y + frame.metrics.px(folded_height);
}

/// Marks a stage for lessons, with its title, labels and bar, whose low-end label may extend to the left.
void mark_block(const Frame& frame, const StageBlock& s, ImVec2 origin) {
  const bool below = s.map.show_bar && !s.map.has_vertical_bar;
  const float low_end = below ? text_width(frame.fonts.mono12, "−00.00") + frame.metrics.px(5) : 0;
  const float left = origin.x + s.title.x, top = origin.y + s.title.y;
  const float bottom = origin.y + s.labels.y + column_label_height(frame, s.map) +
                       static_cast<float>(s.map.height) +
                       (below ? bar_room(frame, s.map) : frame.metrics.px(6));
  frame.landmarks.mark(
      std::string(s.map.of_gradient ? "block/d_" : "block/") + core::attention::info(s.map.stage).name,
      {left - std::max(0.0f, low_end - s.map.label_width), top}, {left + s.width(), bottom});
}

/// Scrolls to the top after another model was opened.
void reset_scroll(const Frame& frame) {
  const ImGuiID here = ImGui::GetID("document");
  const int document =
      static_cast<int>(ImGui::GetID((frame.document.title + "/" + frame.document.preset).c_str()));
  if (ImGui::GetStateStorage()->GetInt(here, document) != document) {
    ImGui::SetScrollX(0);
    ImGui::SetScrollY(0);
  }
  ImGui::GetStateStorage()->SetInt(here, document);
}

/// Scrolls the row of the requested stage into view, or its beginning if it is too high.
void scroll_to_target(const Frame& frame, const std::vector<StageRow>& rows) {
  const auto& scroll_target = frame.displayed.selection.scroll_target;
  if (!scroll_target) return;
  for (const StageRow& row : rows)
    for (const StageBlock& s : row.blocks)
      if (s.map.stage == *scroll_target) {
        const float height = ImGui::GetWindowHeight() - 2 * ImGui::GetStyle().WindowPadding.y;
        ImGui::SetScrollY(std::max(0.0f, std::min(s.title.y, row.bottom - height)));
      }
  frame.commands.add(set<&Selection::scroll_target>(std::nullopt));
}

}  // namespace

void draw_stages(const Frame& frame) {
  reset_scroll(frame);
  if (frame.displayed.look.large && frame.displayed.has(*frame.displayed.look.large))
    return draw_large(frame);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  // The layout must not depend on whether there is a scrollbar.
  const float padding = origin.x - ImGui::GetWindowPos().x + ImGui::GetScrollX();
  const float width = std::floor(ImGui::GetWindowWidth() - 2 * padding - ImGui::GetStyle().ScrollbarSize);
  const float below = has_folded(frame) ? frame.metrics.px(folded_height) : 0;
  const std::vector<StageRow> rows = lay_out(frame, width - frame.metrics.px(6), room.y - below);
  scroll_to_target(frame, rows);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    draw_heading(frame, rows[r], origin);
    if (r > 0) draw_return(frame, rows[r - 1], rows[r], origin, width);
    for (std::size_t k = 0; k < rows[r].blocks.size(); ++k) {
      const StageBlock& s = rows[r].blocks[k];
      draw_title(frame, s, origin);
      if (k > 0) draw_arrow_between(frame, rows[r].blocks[k - 1], s, origin);
      draw_heatmap(frame, s.map, {origin.x + s.labels.x, origin.y + s.labels.y});
      handle_stage(frame, s.map.stage);
      draw_code(frame, s, origin, width);
      mark_block(frame, s, origin);
    }
  }
  const float bottom = draw_folded(frame, origin, width, rows.empty() ? 0 : rows.back().bottom);
  platform::move_to(origin);
  float widest = 1;
  for (const StageRow& row : rows)
    widest = std::max(widest, row.blocks.back().title.x + row.blocks.back().width());
  if (widest > width) frame.landmarks.mark("strip/wider", origin, {origin.x + widest, origin.y + bottom});
  ImGui::Dummy({widest > width ? widest : 1, std::max(1.0f, bottom)});
}

}  // namespace app::panels
