#include "app/ui/panels/inspector/inspector_panel.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/heads/heads_panel.hpp"
#include "app/ui/panels/tokens/tokens_panel.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "core/base/text.hpp"
#include "core/graph/statistics.hpp"

namespace app::panels {

using core::attention::Stage;

namespace {

/// Maximum number of heads listed one by one; further ones are counted.
constexpr std::size_t max_listed_heads = 16;

using core::attention::Coloring;
using core::attention::Columns;
using core::attention::RowStatistics;
using core::attention::StageInfo;

constexpr std::size_t max_bars = 12;

void draw_bar(Pen& pen, const CellRef& cell, std::size_t j, const std::string& name, double value, double top,
              bool masked, bool dropped) {
  const Frame& frame = pen.frame;
  const bool chosen = j == cell.column;
  const float number = text_width(frame.fonts.mono13, "−0.0000") + frame.metrics.px(8);
  const float index = text_width(frame.fonts.mono12, std::to_string(frame.displayed.model.n_keys() - 1)) +
                      frame.metrics.px(7);
  const float names = frame.metrics.px(frame.metrics.compact ? 52 : 62);
  const float from = pen.left + index + names, to = pen.right - number, half = frame.metrics.px(5);
  pen.skip(10);
  pen.at_left(frame.fonts.mono12, frame.palette.faint, std::to_string(j));
  draw_text(frame.fonts.sans14, {pen.left + index, pen.y}, Align::left_middle,
            chosen   ? frame.palette.text
            : masked ? frame.palette.faint
                     : frame.palette.dim,
            shortened(frame.fonts.sans14, name, names - frame.metrics.px(4)));
  const ImVec2 min{from, pen.y - half}, max{to, pen.y + half};
  draw_rect(min, max, frame.palette.control.rest);
  if (masked) {
    hatch(min, max, frame.metrics.px(6), packed(frame.palette.hatch.lines, 0.5f));
  } else if (std::isfinite(value) && value > 0) {
    const double t = top > 0 ? std::min(1.0, value / top) : 0;
    draw_rect({from, pen.y - half}, {from + (to - from) * static_cast<float>(t), pen.y + half},
              render::color_at(render::ColorMap::weights, frame.palette.dark, std::max(t, 0.15)));
  }
  const std::string text = masked ? "masked" : dropped ? "dropped" : fixed(value, 4);
  pen.at_right(masked || dropped ? frame.fonts.sans13 : frame.fonts.mono13,
               masked || dropped ? frame.palette.faint : frame.palette.text, text);
  pen.skip(9);
}

/// Returns how dropout changes a row's sum in this model, in a sentence.
std::string dropout_words(const Frame& frame, const CellRef& cell) {
  const auto& model = frame.displayed.model;
  if (model.dropout.place != core::attention::DropoutPlace::weights)
    return "Dropout was applied to the scores, before the softmax: these are the weights.";
  const double sum =
      core::attention::row_statistics(frame.displayed.trace.at(Stage::weights, cell.head), cell.row).sum;
  constexpr double rounding = 1e-6;
  const std::string before = std::abs(sum - 1) <= rounding
                                 ? "The row sums to 1 before dropout, not after: "
                                 : "Before dropout the row sums to " + fixed(sum, 4) + ": ";
  return before + (core::attention::dropout_scale(model.dropout) > 1
                       ? "kept weights are scaled by 1/(1 − p), so that the mean over many masks is the same."
                       : "kept weights are not scaled, so the mean over many masks is smaller.");
}

/// Shows a tooltip for the lines written since the pen was at top.
void lines_tooltip(const Pen& pen, float top, const char* words) {
  if (hovers({pen.left, top}, {pen.right, pen.y})) ImGui::SetTooltip("%s", words);
}

/// Draws the row of a weight: the keys attended to, sum and entropy.
void draw_weight_row(Pen& pen, const CellRef& cell) {
  const Frame& frame = pen.frame;
  const auto &tokens = frame.displayed.sequence().tokens, &keys = frame.displayed.sequence().keys();
  const StageInfo& stage = core::attention::info(cell.stage);
  const arma::rowvec row = frame.displayed.trace.at(stage.stage, cell.head).row(cell.row);
  const RowStatistics facts = core::attention::row_statistics(row);
  const bool after_dropout = cell.stage == Stage::dropped_weights;
  pen.rule();
  pen.heading("Row of " +
              shortened(frame.fonts.sans16, quoted_token(tokens[cell.row]), (pen.right - pen.left) * 0.6f));
  if (facts.largest > 0)
    pen.prose(quoted_token(tokens[cell.row]) + " attends most to " +
                  (facts.argmax == cell.row && &keys == &tokens ? std::string("itself")
                                                                : quoted_token(keys[facts.argmax])) +
                  ", " + fixed(facts.largest, 4),
              frame.palette.dim);
  std::vector<std::size_t> order(row.n_elem);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (order.size() > max_bars) {
    const auto size = [&](std::size_t j) {  // NaN sorts last, as it has no order
      const double value = row[j];
      return std::isnan(value) ? -arma::datum::inf : value;
    };
    std::partial_sort(
        order.begin(), order.begin() + max_bars, order.end(),
        [&](std::size_t a, std::size_t b) { return size(a) > size(b) || (size(a) == size(b) && a < b); });
    order.resize(max_bars);
  }
  for (const std::size_t j : order)
    draw_bar(pen, cell, j, visible_token(keys[j]), row[j],
             core::attention::color_range_max(frame.displayed.model, cell.stage),
             frame.displayed.trace.at(Stage::mask)(cell.row, j) == 0 && row[j] == 0,
             after_dropout && frame.displayed.trace.at(Stage::dropout_mask, cell.head)(cell.row, j) == 0);
  if (row.n_elem > max_bars) {
    double rest = 0;
    for (std::size_t j = 0; j < row.n_elem; ++j) rest += row[j];
    for (const std::size_t j : order) rest -= row[j];
    pen.pair(std::to_string(row.n_elem - max_bars) + " other keys", fixed(rest, 4));
  }
  pen.skip(6);
  const bool is_distribution = !row.has_nan();
  pen.pair("row sum", is_distribution ? fixed(facts.sum, 4) : "NaN");
  constexpr double rounding = 1e-6;
  const bool sums_to_one = is_distribution && std::abs(facts.sum - 1) <= rounding;
  if (cell.stage == Stage::weights && is_distribution && !sums_to_one)
    pen.prose("The row does not sum to 1, so it is not a distribution and has no entropy.",
              frame.palette.dim);
  if (cell.stage == Stage::weights && sums_to_one) {
    const auto n_unmasked =
        static_cast<std::size_t>(arma::accu(frame.displayed.trace.at(Stage::mask).row(cell.row)));
    pen.pair("entropy, at most " + fixed(std::log2(std::max<double>(1, static_cast<double>(n_unmasked))), 2) +
                 " bits",
             fixed(facts.entropy_bits, 4));
    const float top = pen.y;
    pen.pair("effective number of keys", fixed(facts.effective_count, 2));
    lines_tooltip(pen, top,
                  "2 to the power of the entropy: the number of equally weighted keys with the same entropy");
    if (frame.displayed.model.dropout.active())
      pen.pair("row sum after dropout",
               fixed(core::attention::row_statistics(
                         frame.displayed.trace.at(Stage::dropped_weights, cell.head), cell.row)
                         .sum,
                     4));
  }
  if (after_dropout && frame.displayed.model.dropout.active())
    pen.prose(dropout_words(frame, cell), frame.palette.dim);
}

void draw_plain_row(Pen& pen, const CellRef& cell) {
  const Frame& frame = pen.frame;
  const arma::rowvec row = frame.displayed.trace.at(cell.stage, cell.head).row(cell.row);
  const RowStatistics facts = core::attention::row_statistics(row);
  if (row.n_elem < 2) return;
  pen.rule();
  pen.heading("Row summary");
  const auto smallest = static_cast<std::size_t>(row.index_min());
  pen.pair("smallest", fmt::format("{} at {}", fixed(facts.smallest, 4), smallest));
  pen.pair("largest", fmt::format("{} at {}", fixed(facts.largest, 4), facts.argmax));
}

}  // namespace

void draw_row(Pen& pen, const CellRef& cell) {
  const StageInfo& stage = core::attention::info(cell.stage);
  if (stage.coloring == Coloring::weights && stage.columns == Columns::tokens)
    draw_weight_row(pen, cell);
  else if (stage.coloring == Coloring::signed_values)
    draw_plain_row(pen, cell);
}

void draw_other_heads(Pen& pen, const CellRef& cell) {
  const Frame& frame = pen.frame;
  const StageInfo& stage = core::attention::info(cell.stage);
  const auto& model = frame.displayed.model;
  const std::size_t n = core::attention::n_matrices(model, cell.stage);
  if (!stage.per_head || n < 2) return;
  const bool shared = n < model.n_heads;
  pen.rule();
  pen.heading(shared ? "Same cell across groups" : "Same cell across heads");
  for (std::size_t k = 0; k < std::min(n, max_listed_heads); ++k) {
    const std::size_t h = core::attention::head_of_matrix(model, cell.stage, k);
    const std::string number =
        inspector_text(frame.displayed.trace.at(stage.stage, h)(cell.row, cell.column));
    const std::string words = head_words(model, cell.stage, h);
    if (core::attention::matrix_of_head(model, cell.stage, cell.head) == k)
      pen.pair(words, number);
    else if (pen.linked_pair("inspector/head/" + std::to_string(h), words, number))
      frame.commands.add(FollowCell{{cell.stage, h, cell.row, cell.column}});
  }
  if (n > max_listed_heads)
    pen.prose(fmt::format("and {}{}", n - max_listed_heads, shared ? " more groups" : " more heads"),
              frame.palette.dim);
}

namespace {

constexpr std::size_t max_keys = 3;

/// Returns the unmasked keys with the largest weights of the query's row, the largest first.
std::vector<std::size_t> top_keys(const Frame& frame, const arma::rowvec& weights, std::size_t query) {
  std::vector<std::size_t> keys;
  for (std::size_t j = 0; j < weights.n_elem; ++j)
    if (frame.displayed.trace.at(Stage::mask)(query, j) != 0) keys.push_back(j);
  const auto count = static_cast<std::ptrdiff_t>(std::min(keys.size(), max_keys));
  std::partial_sort(keys.begin(), keys.begin() + count, keys.end(), [&](std::size_t a, std::size_t b) {
    return weights[a] > weights[b] || (weights[a] == weights[b] && a < b);
  });
  keys.resize(static_cast<std::size_t>(count));
  return keys;
}

/// Draws one key with its weight as a bar and as a link that pins the weight in Stages.
void draw_key(Pen& pen, std::size_t head, std::size_t query, std::size_t key) {
  const Frame& frame = pen.frame;
  const double weight = frame.displayed.trace.at(Stage::weights, head)(query, key);
  const float middle = pen.y + frame.metrics.px(9), half = frame.metrics.px(5);
  const float index = pen.left + frame.metrics.px(14) +
                      text_width(frame.fonts.mono12, std::to_string(frame.displayed.model.n_keys() - 1));
  const float from = pen.left + frame.metrics.px(frame.metrics.compact ? 92 : 110);
  const float to = pen.right - text_width(frame.fonts.mono13, "0.0000") - frame.metrics.px(10);
  draw_text(frame.fonts.mono12, {index, middle}, Align::right_middle, frame.palette.faint,
            std::to_string(key));
  const float words = index + frame.metrics.px(8);
  draw_text(frame.fonts.sans14, {words, middle}, Align::left_middle, frame.palette.dim,
            shortened(frame.fonts.sans14, visible_token(frame.displayed.sequence().keys()[key]),
                      from - words - frame.metrics.px(4)));
  draw_fraction_bar(frame, {from, middle - half}, {to, middle + half}, std::clamp(weight, 0.0, 1.0),
                    frame.palette.head(head));
  const std::string name = fmt::format("inspector/weight/{}/{}", head, key);
  if (link(frame, name, frame.fonts.mono13, {pen.right, middle}, Align::right_middle, frame.palette.text,
           fixed(weight, 4), "Shows how this weight is computed in Stages"))
    frame.commands.add(set<&Look::tab>(Tab::stages), FollowCell{{Stage::weights, head, query, key}});
  pen.skip(19);
}

void draw_head_row(Pen& pen, std::size_t head, std::size_t query) {
  const Frame& frame = pen.frame;
  const arma::rowvec weights = frame.displayed.trace.at(Stage::weights, head).row(query);
  const RowStatistics facts = core::attention::row_statistics(weights);
  pen.rule();
  const float middle = pen.y + frame.metrics.px(6), half = frame.metrics.px(5);
  draw_rect({pen.left, middle - half}, {pen.left + 2 * half, middle + half}, frame.palette.head(head),
            frame.metrics.px(2));
  draw_text(frame.fonts.sans15, {pen.left + frame.metrics.px(18), middle}, Align::left_middle,
            frame.palette.text, "head " + std::to_string(head));
  const bool is_number = !weights.has_nan();
  draw_text(frame.fonts.mono13, {pen.right, middle}, Align::right_middle, frame.palette.dim,
            is_number ? fixed(facts.entropy_bits, 2) + " bits" : "NaN");
  pen.skip(20);
  if (!is_number) return pen.prose("Its weights are not numbers.", frame.palette.dim);
  double rest = facts.sum;
  const std::vector<std::size_t> keys = top_keys(frame, weights, query);
  for (const std::size_t key : keys) {
    draw_key(pen, head, query, key);
    rest -= weights[key];
  }
  const auto n_unmasked =
      static_cast<std::size_t>(arma::accu(frame.displayed.trace.at(Stage::mask).row(query)));
  if (n_unmasked <= keys.size()) return;
  const float at = pen.y + frame.metrics.px(9);
  draw_text(frame.fonts.sans13, {pen.left + frame.metrics.px(18), at}, Align::left_middle,
            frame.palette.faint, core::text::counted(n_unmasked - keys.size(), "other key"));
  draw_text(frame.fonts.mono13, {pen.right, at}, Align::right_middle, frame.palette.faint,
            fixed(std::max(rest, 0.0), 4));
  pen.skip(18);
}

}  // namespace

void draw_query(Pen& pen) {
  const Frame& frame = pen.frame;
  const auto query = frame.displayed.look.tokens.query();
  if (!query) {
    pen.skip(4);
    pen.prose("Hover over a query to see which keys it attends to. Click to pin it; ↑ and ↓ move.",
              frame.palette.dim);
    return;
  }
  const std::vector<std::size_t> heads = heads_with_lines(frame);
  pen.skip(20);
  pen.at_left(frame.fonts.sans19, frame.palette.text, "Query");
  const std::string number = " " + std::to_string(*query);
  const float room = pen.right - pen.left - text_width(frame.fonts.sans19, "Query  " + number);
  pen.at_right(
      frame.fonts.sans19, frame.palette.text,
      shortened(frame.fonts.sans19, visible_token(frame.displayed.sequence().tokens[*query]), room) + number);
  pen.skip(24);
  const auto n_unmasked =
      static_cast<std::size_t>(arma::accu(frame.displayed.trace.at(Stage::mask).row(*query)));
  const std::string words =
      fmt::format("attends to {} of {} keys, in {} of {}", n_unmasked, frame.displayed.model.n_keys(),
                  heads.size(), core::text::counted(frame.displayed.model.n_heads, "head"));
  pen.at_left(frame.fonts.sans14, frame.palette.dim, words);
  pen.skip(8);
  for (std::size_t k = 0; k < std::min(heads.size(), max_listed_heads); ++k)
    draw_head_row(pen, heads[k], *query);
  if (heads.size() > max_listed_heads) {
    pen.rule();
    pen.prose(fmt::format("and {} more heads", heads.size() - max_listed_heads), frame.palette.dim);
  }
}

namespace {

constexpr std::size_t max_similarity_heads = 64;

/// Returns two decimals as "04"; "1" for numbers that round to 1, "–" for NaN.
std::string hundredths(double similarity) {
  if (std::isnan(similarity)) return "–";
  const std::string digits = std::to_string(std::lround(similarity * 100));
  return digits.size() < 2 ? "0" + digits : digits.size() > 2 ? "1" : digits;
}

/// Positions of the cells of the similarity matrix.
struct SimilarityGrid {
  ImVec2 corner;
  float cell;
  std::size_t count;
  ImVec2 at(std::size_t row, std::size_t column) const {
    return {std::round(corner.x + static_cast<float>(column) * cell),
            std::round(corner.y + static_cast<float>(row) * cell)};
  }
};

bool has_numbers(const Frame& frame, const SimilarityGrid& g) {
  return g.cell >= text_width(frame.fonts.mono12, "00") + 3;
}

void draw_cells(const Frame& frame, const SimilarityGrid& g, const arma::mat& similarity,
                const std::vector<std::size_t>& order) {
  const bool numbers = has_numbers(frame, g);
  const float gap = g.cell >= 8 ? 1 : 0;
  for (std::size_t r = 0; r < g.count; ++r)
    for (std::size_t c = 0; c < g.count; ++c) {
      const double value = similarity(order[r], order[c]);
      const Rgb color = std::isnan(value)
                            ? frame.palette.hatch.background
                            : render::color_at(render::ColorMap::weights, frame.palette.dark, value);
      const ImVec2 a = g.at(r, c), b = g.at(r + 1, c + 1);
      draw_rect(a, {b.x - gap, b.y - gap}, color);
      if (numbers && r != c)
        draw_text(frame.fonts.mono12, {(a.x + b.x - 1) / 2, (a.y + b.y - 1) / 2}, Align::middle,
                  readable_on(color), hundredths(value));
    }
}

void draw_names(const Frame& frame, const SimilarityGrid& g, const std::vector<std::size_t>& order,
                std::size_t head) {
  const std::size_t step = label_step(g.cell, frame.metrics.px(16));
  for (std::size_t k = 0; k < g.count; ++k) {
    const bool chosen = order[k] == head;
    if (k % step != 0 && !(chosen && step == 1)) continue;
    const ImU32 ink = packed(chosen ? frame.palette.text : frame.palette.faint);
    const ImVec2 a = g.at(k, k);
    draw_text(frame.fonts.mono12, {a.x + g.cell / 2, g.corner.y - frame.metrics.px(9)}, Align::middle, ink,
              std::to_string(order[k]));
    draw_text(frame.fonts.mono12, {g.corner.x - frame.metrics.px(6), a.y + g.cell / 2}, Align::right_middle,
              ink, std::to_string(order[k]));
  }
}

void handle_mouse(const Frame& frame, const SimilarityGrid& g, const arma::mat& similarity,
                  const std::vector<std::size_t>& order) {
  const float side = g.cell * static_cast<float>(g.count);
  platform::move_to(g.corner);
  hit_area("likeness", {side, side});
  frame.landmarks.mark_item("inspector/likeness");
  if (!ImGui::IsItemHovered()) return;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const auto index = [&](float along) {
    return std::min(static_cast<std::size_t>(std::max(0.0f, along / g.cell)), g.count - 1);
  };
  const std::size_t a = order[index(mouse.y - g.corner.y)], b = order[index(mouse.x - g.corner.x)];
  ImGui::SetTooltip("head %zu and head %zu: %s", a, b, fraction_text(similarity(a, b), 4).c_str());
  if (ImGui::IsItemClicked()) frame.commands.add(set<&Look::head>(a));
}

/// Returns the other head that is most or least similar to this one; nothing when none can be compared.
std::optional<std::size_t> extreme(const arma::mat& similarity, std::size_t head, bool most) {
  std::optional<std::size_t> found;
  for (std::size_t h = 0; h < similarity.n_rows; ++h) {
    const double value = similarity(head, h);
    if (h == head || std::isnan(value)) continue;
    if (!found || (most ? value > similarity(head, *found) : value < similarity(head, *found))) found = h;
  }
  return found;
}

void draw_extreme(Pen& pen, const arma::mat& similarity, std::size_t head, bool most) {
  const auto found = extreme(similarity, head, most);
  if (!found) return;
  const std::string words = most ? "most similar" : "least similar";
  const bool pressed = pen.linked_pair("inspector/" + words, fmt::format("{}: head {}", words, *found),
                                       fraction_text(similarity(head, *found), 4));
  if (pressed) pen.frame.commands.add(set<&Look::head>(*found));
}

}  // namespace

void draw_similarity(Pen& pen, std::size_t head) {
  const Frame& frame = pen.frame;
  pen.rule();
  draw_text(frame.fonts.sans13, {pen.right, pen.y + frame.metrics.px(8)}, Align::right_middle,
            frame.palette.faint, "1 − JSD, mean of rows");
  pen.heading("Similarity of heads");
  if (!similarity_is_quick(frame.displayed.trace) &&
      frame.displayed.selection.similarity_version != frame.displayed.version) {
    pen.prose("This takes a moment for so many heads and tokens.", frame.palette.dim);
    pen.skip(10);
    if (link(frame, "inspector/work out likeness", frame.fonts.sans14, {pen.left, pen.y}, Align::left_middle,
             frame.palette.accent, "Compute"))
      frame.commands.add(set<&Selection::similarity_version>(frame.displayed.version));
    pen.skip(12);
    return;
  }
  const arma::mat& similarity =
      frame.work.statistics.similarity(frame.displayed.trace, frame.displayed.version);
  if (similarity.is_empty()) return pen.prose("Computing…", frame.palette.dim);
  if (similarity.n_rows <= max_similarity_heads) {
    const std::vector<std::size_t> order = sorted_heads(frame);
    const float labels = frame.metrics.px(24), room = pen.right - pen.left - labels;
    const float cell = std::min(std::floor(room / static_cast<float>(order.size())), frame.metrics.px(34));
    pen.skip(22);
    const SimilarityGrid g{
        {std::round(pen.left + labels), std::round(pen.y)}, std::max(cell, 1.0f), order.size()};
    draw_cells(frame, g, similarity, order);
    draw_names(frame, g, order, head);
    const auto row = static_cast<std::size_t>(std::find(order.begin(), order.end(), head) - order.begin());
    outline({g.at(row, 0).x - 1, g.at(row, 0).y - 1}, g.at(row + 1, g.count), frame.palette.selection, 1);
    handle_mouse(frame, g, similarity, order);
    pen.y = g.at(g.count, 0).y + frame.metrics.px(4);
    pen.prose(
        has_numbers(frame, g) ? "× 100; 1 means ≥ 0.995. Click selects a head." : "Click selects a head.",
        frame.palette.faint);
    pen.skip(4);
  } else {
    pen.prose(fmt::format("The matrix is shown for up to {} heads.", max_similarity_heads),
              frame.palette.faint);
  }
  draw_extreme(pen, similarity, head, true);
  draw_extreme(pen, similarity, head, false);
}

namespace {

using core::explain::Explanation;
using core::explain::SourceRect;
using core::explain::StepLine;
using std::to_string;

constexpr std::size_t max_links = 6, max_contributions = 12;

/// Returns the cell of a rectangle that is nearest to the row and the column of another cell.
CellRef nearest(const SourceRect& cells, const CellRef& to) {
  return {std::get<Stage>(cells.source), cells.head, std::clamp(to.row, cells.row0, cells.row1 - 1),
          std::clamp(to.column, cells.column0, cells.column1 - 1)};
}

/// Returns the token, or "row 3" when its name is only its index.
std::string token_words(const std::vector<std::string>& tokens, const char* what, std::size_t index) {
  const std::string& token = tokens[index];
  return token == to_string(index) ? what + (" " + token) : visible_token(token);
}

std::string cells_text(const Frame& frame, const SourceRect& cells) {
  const auto& stage = core::attention::info(std::get<Stage>(cells.source));
  const core::attention::Sequence& sequence = frame.displayed.sequence();
  std::string words = cells.count() == 1 ? stage.one : stage.title;
  if (stage.per_head && frame.displayed.model.n_heads > 1)
    words += ", " + head_words(frame.displayed.model, stage.stage, cells.head);
  if (cells.row1 - cells.row0 == 1)
    words += ", " + token_words(row_tokens(stage, sequence), "row", cells.row0);
  if (cells.column1 - cells.column0 == 1 && stage.columns != core::attention::Columns::single) {
    const bool key = stage.columns == core::attention::Columns::tokens;
    words += key ? " → " + token_words(sequence.keys(), "key", cells.column0)
                 : ", column " + to_string(cells.column0);
  }
  return words;
}

/// Returns cells of matrices that heads share only once: for the given head if it has them, else the first.
std::vector<SourceRect> without_duplicates(const core::attention::Model& model, std::size_t head,
                                           std::vector<SourceRect> all) {
  std::vector<SourceRect> unique_cells;
  for (SourceRect& cells : all) {
    if (const Stage* stage = std::get_if<Stage>(&cells.source)) {
      const std::size_t matrix = matrix_of_head(model, *stage, cells.head);
      const bool is_own =
          core::attention::info(*stage).per_head && matrix == matrix_of_head(model, *stage, head);
      cells.head = is_own ? head : head_of_matrix(model, *stage, matrix);
    }
    if (std::ranges::find(unique_cells, cells) == unique_cells.end()) unique_cells.push_back(cells);
  }
  return unique_cells;
}

/// Returns the cells computed from a cell: follows single cells downstream, lists several but stops there.
std::vector<SourceRect> downstream(const Frame& frame, CellRef cell) {
  std::vector<SourceRect> all;
  while (true) {
    const std::vector<SourceRect> next =
        without_duplicates(frame.displayed.model, cell.head, core::explain::results(frame.displayed, cell));
    all.insert(all.end(), next.begin(), next.end());
    if (next.size() != 1 || next[0].count() != 1) return all;
    cell = nearest(next[0], cell);
  }
}

}  // namespace

void draw_contributions(Pen& pen, const Explanation& explanation) {
  const auto& model = pen.frame.displayed.model;
  if (explanation.cell.stage != Stage::output || model.n_heads < 2) return;
  std::vector<double> by_head(model.n_heads, 0);
  std::size_t n_terms = 0;
  double bias = 0;
  for (const auto& step : explanation.steps)
    for (const StepLine& line : step.lines) {
      if (step.cell == explanation.cell && line.role == StepLine::term &&
          line.label.kind == core::explain::Label::head) {
        by_head[line.label.index] += line.value;
        ++n_terms;
      }
      if (line.form == core::explain::LineForm::addition) bias = line.b.value;
    }
  if (n_terms == 0) return;
  pen.rule();
  pen.heading("Computed from");
  const auto size = [](double v) { return std::isfinite(v) ? std::abs(v) : 0; };
  std::vector<std::size_t> order(by_head.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t h) { return size(by_head[h]); });
  const double end = std::max(size(bias), size(by_head[order.front()]));
  double rest = 0;
  for (std::size_t k = max_contributions; k < order.size(); ++k) rest += by_head[order[k]];
  if (order.size() > max_contributions) order.resize(max_contributions);
  std::ranges::sort(order);
  for (const std::size_t h : order) pen.share("head " + to_string(h), by_head[h], end);
  if (by_head.size() > max_contributions)
    pen.share(core::text::counted(by_head.size() - max_contributions, "other"), rest,
              std::max(end, size(rest)));
  if (model.projections && model.projections->output && model.projections->output->bias)
    pen.share("bias", bias, end);
}

void draw_downstream_cells(Pen& pen, const CellRef& cell) {
  const Frame& frame = pen.frame;
  const std::vector<SourceRect> all = downstream(frame, cell);
  if (all.empty()) return;
  pen.rule();
  pen.heading("Used in");
  for (std::size_t k = 0; k < std::min(all.size(), max_links); ++k) {
    const CellRef target = nearest(all[k], cell);
    const std::string number = all[k].count() == 1 ? inspector_text(cell_value(frame, target))
                                                   : to_string(all[k].count()) + " cells";
    if (pen.linked_pair("inspector/leads/" + to_string(k), cells_text(frame, all[k]), number))
      frame.commands.add(FollowCell{target});
  }
  if (all.size() > max_links) pen.prose("and likewise in every head", frame.palette.dim);
}

}  // namespace app::panels
