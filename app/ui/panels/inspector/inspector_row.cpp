#include "app/ui/panels/inspector/inspector_row.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "app/session/navigation.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/number_text.hpp"
#include "core/graph/row_facts.hpp"

namespace app::panels {
namespace {

using core::attention::Coloring;
using core::attention::Columns;
using core::attention::RowFacts;
using core::attention::StageInfo;
using widgets::Align;
using widgets::Pen;

constexpr std::size_t most_bars = 12;

void draw_bar(Pen& pen, const CellRef& cell, std::size_t j, const std::string& name, double value, double top,
              bool hidden, bool dropped) {
  const Frame& frame = pen.frame;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const bool chosen = j == cell.column;
  const float number = widgets::text_width(frame.fonts.mono13, "−0.0000") + frame.metrics.px(8);
  const float index =
      widgets::text_width(frame.fonts.mono12, std::to_string(frame.shown.model.n_keys() - 1)) +
      frame.metrics.px(7);
  const float names = frame.metrics.px(frame.metrics.compact ? 52 : 62);
  const float from = pen.left + index + names, to = pen.right - number, half = frame.metrics.px(5);
  pen.skip(10);
  widgets::draw_text(frame.fonts.mono12, {pen.left, pen.y}, Align::left_middle, packed(frame.palette.faint),
                     std::to_string(j));
  widgets::draw_text(frame.fonts.sans14, {pen.left + index, pen.y}, Align::left_middle,
                     packed(chosen   ? frame.palette.text
                            : hidden ? frame.palette.faint
                                     : frame.palette.dim),
                     widgets::shortened(frame.fonts.sans14, name, names - frame.metrics.px(4)));
  const ImVec2 min{from, pen.y - half}, max{to, pen.y + half};
  list->AddRectFilled(min, max, packed(frame.palette.control.rest));
  if (hidden) {
    widgets::hatch(list, min, max, frame.metrics.px(6), packed(frame.palette.hatch.lines, 0.5f));
  } else if (std::isfinite(value) && value > 0) {
    const double t = top > 0 ? std::min(1.0, value / top) : 0;
    list->AddRectFilled(
        {from, pen.y - half}, {from + (to - from) * static_cast<float>(t), pen.y + half},
        packed(render::color_at(render::ColorMap::weights, frame.palette.dark, std::max(t, 0.15))));
  }
  const std::string text = hidden ? "hidden" : dropped ? "dropped" : widgets::fixed(value, 4);
  widgets::draw_text(hidden || dropped ? frame.fonts.sans13 : frame.fonts.mono13, {pen.right, pen.y},
                     Align::right_middle,
                     packed(hidden || dropped ? frame.palette.faint : frame.palette.text), text);
  pen.skip(9);
}

/// What dropout makes of a row's sum, as far as it is so here.
std::string dropout_words(const Frame& frame, const CellRef& cell) {
  const auto& model = frame.shown.model;
  if (model.departures.dropout_place != core::attention::DropoutPlace::weights)
    return "Dropout fell on the scores, before the softmax: these are the weights.";
  const double sum = core::attention::row_facts(frame.shown.trace.heads[cell.head].weights, cell.row).sum;
  constexpr double rounding = 1e-6;
  const std::string before = std::abs(sum - 1) <= rounding
                                 ? "The row sums to 1 before dropout, not after: "
                                 : "Before dropout the row sums to " + widgets::fixed(sum, 4) + ": ";
  return before + (core::attention::survivor_factor(model.dropout) > 1
                       ? "survivors are enlarged by 1/(1 − p), so that the average over many masks is that."
                       : "survivors are not enlarged, so that the average over many masks is less.");
}

/// A tooltip for the lines that were written since the pen stood at top.
void explain_lines(const Pen& pen, float top, const char* words) {
  if (ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect({pen.left, top}, {pen.right, pen.y}))
    ImGui::SetTooltip("%s", words);
}

/// The row of a weight: to whom it goes, its sum and how spread it is.
void draw_weight_row(Pen& pen, const CellRef& cell) {
  const Frame& frame = pen.frame;
  const auto &tokens = frame.shown.model.sequences[frame.shown.look.sequence].tokens,
             &keys = frame.shown.model.sequences[frame.shown.look.sequence].keys();
  const StageInfo& stage = core::attention::info(cell.stage);
  const arma::rowvec row = stage.matrix(frame.shown.trace, cell.head).row(cell.row);
  const RowFacts facts = core::attention::row_facts(row);
  const bool after_dropout = cell.stage == Stage::dropped_weights;
  pen.rule();
  pen.heading("Row of " +
              widgets::shortened(frame.fonts.sans16, tokens[cell.row], (pen.right - pen.left) * 0.6f));
  if (facts.largest > 0)
    pen.prose(tokens[cell.row] + " listens most to " +
                  (facts.where == cell.row && &keys == &tokens ? std::string("itself") : keys[facts.where]) +
                  ", " + widgets::fixed(facts.largest, 4),
              frame.palette.dim);
  std::vector<std::size_t> order(row.n_elem);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (order.size() > most_bars) {
    const auto size = [&](std::size_t j) {  // sorting needs an order, which NaN has not
      const double value = row[j];
      return std::isnan(value) ? -arma::datum::inf : value;
    };
    std::partial_sort(
        order.begin(), order.begin() + most_bars, order.end(),
        [&](std::size_t a, std::size_t b) { return size(a) > size(b) || (size(a) == size(b) && a < b); });
    order.resize(most_bars);
  }
  for (const std::size_t j : order)
    draw_bar(pen, cell, j, keys[j], row[j], core::attention::top_of_range(frame.shown.model, cell.stage),
             frame.shown.trace.mask(cell.row, j) == 0 && row[j] == 0,
             after_dropout && frame.shown.trace.heads[cell.head].dropout_mask(cell.row, j) == 0);
  if (row.n_elem > most_bars) {
    double rest = 0;
    for (std::size_t j = 0; j < row.n_elem; ++j) rest += row[j];
    for (const std::size_t j : order) rest -= row[j];
    pen.pair(std::to_string(row.n_elem - most_bars) + " other keys", widgets::fixed(rest, 4));
  }
  pen.skip(6);
  const bool is_distribution = !row.has_nan();
  pen.pair("row sum", is_distribution ? widgets::fixed(facts.sum, 4) : "NaN");
  constexpr double rounding = 1e-6;
  const bool sums_to_one = is_distribution && std::abs(facts.sum - 1) <= rounding;
  if (cell.stage == Stage::weights && is_distribution && !sums_to_one)
    pen.prose("The row does not sum to 1, so it is no distribution and has no entropy.", frame.palette.dim);
  if (cell.stage == Stage::weights && sums_to_one) {
    const auto visible = static_cast<std::size_t>(arma::accu(frame.shown.trace.mask.row(cell.row)));
    pen.pair("entropy, at most " +
                 widgets::fixed(std::log2(std::max<double>(1, static_cast<double>(visible))), 2) + " bit",
             widgets::fixed(facts.entropy_bits, 4));
    const float top = pen.y;
    pen.pair("as spread as over", widgets::fixed(facts.effective_count, 2) + " equal keys");
    explain_lines(pen, top, "2 to the entropy: so many keys of equal weight would be as spread as this row");
    if (frame.shown.model.dropout.active())
      pen.pair(
          "row sum after dropout",
          widgets::fixed(
              core::attention::row_facts(frame.shown.trace.heads[cell.head].dropped_weights, cell.row).sum,
              4));
  }
  if (after_dropout && frame.shown.model.dropout.active())
    pen.prose(dropout_words(frame, cell), frame.palette.dim);
}

void draw_plain_row(Pen& pen, const CellRef& cell) {
  const Frame& frame = pen.frame;
  const arma::rowvec row =
      core::attention::info(cell.stage).matrix(frame.shown.trace, cell.head).row(cell.row);
  const RowFacts facts = core::attention::row_facts(row);
  if (row.n_elem < 2) return;
  pen.rule();
  pen.heading("Its row");
  pen.pair("smallest", widgets::fixed(facts.smallest, 4));
  pen.pair("largest", widgets::fixed(facts.largest, 4) + " at " + std::to_string(facts.where));
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
  const auto& model = frame.shown.model;
  const std::size_t n = core::attention::n_matrices(model, cell.stage);
  if (!stage.per_head || n < 2) return;
  const bool shared = n < model.n_heads;
  pen.rule();
  pen.heading(shared ? "The same cell in each group" : "The same cell in each head");
  for (std::size_t k = 0; k < std::min(n, most_heads); ++k) {
    const std::size_t h = core::attention::head_of_matrix(model, cell.stage, k);
    const std::string number = widgets::inspected(stage.matrix(frame.shown.trace, h)(cell.row, cell.column));
    const std::string words = widgets::head_words(model, cell.stage, h);
    if (core::attention::matrix_of_head(model, cell.stage, cell.head) == k)
      pen.pair(words, number);
    else if (pen.linked_pair("inspector/head/" + std::to_string(h), words, number))
      frame.commands.look(
          [there = CellRef{cell.stage, h, cell.row, cell.column}](View& v) { follow(v, there); });
  }
  if (n > most_heads)
    pen.prose("and " + std::to_string(n - most_heads) + (shared ? " more groups" : " more heads"),
              frame.palette.dim);
}

}  // namespace app::panels
