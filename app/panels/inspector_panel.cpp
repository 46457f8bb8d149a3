#include "app/panels/inspector_panel.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "app/widgets/cell_words.hpp"
#include "app/widgets/drawing.hpp"
#include "app/widgets/heatmap_view.hpp"
#include "app/widgets/number_text.hpp"
#include "core/attention/row_facts.hpp"

namespace app::panels {
namespace {

using core::attention::Colouring;
using core::attention::Columns;
using core::attention::RowFacts;
using core::attention::StageInfo;
using widgets::Align;

constexpr std::size_t most_bars = 12;

/// A pen that writes lines from top to bottom inside the panel.
struct Pen {
  const Frame& frame;
  float left, right, y;

  void skip(float length) { y += frame.metrics.px(length); }
  void rule() {
    skip(10);
    ImGui::GetWindowDrawList()->AddRectFilled({left, y}, {right, y + 1}, packed(frame.palette.line));
    skip(12);
  }
  void pair(const std::string& words, const std::string& number) {
    skip(10);
    widgets::draw_text(frame.fonts.sans14, {left, y}, Align::left_middle, packed(frame.palette.dim), words);
    widgets::draw_text(frame.fonts.mono14, {right, y}, Align::right_middle, packed(frame.palette.text), number);
    skip(10);
  }
  void heading(const std::string& words) {
    skip(10);
    widgets::draw_text(frame.fonts.sans16, {left, y}, Align::left_middle, packed(frame.palette.text), words);
    skip(14);
  }
  void prose(const std::string& words, Rgb colour) {
    ImGui::PushFont(frame.fonts.sans14);
    ImGui::PushStyleColor(ImGuiCol_Text, vec(colour));
    ImGui::SetCursorScreenPos({left, y});
    ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + right - left);
    ImGui::TextUnformatted(words.c_str());
    ImGui::PopTextWrapPos();
    y = ImGui::GetItemRectMax().y;
    ImGui::PopStyleColor();
    ImGui::PopFont();
    skip(4);
  }
};

void draw_top(Pen& pen, const char* state) {
  const Frame& frame = pen.frame;
  pen.skip(8);
  widgets::draw_text(frame.fonts.sans13, {pen.left, pen.y}, Align::left_middle, packed(frame.palette.dim), "INSPECTOR");
  widgets::draw_text(frame.fonts.sans13, {pen.right, pen.y}, Align::right_middle, packed(frame.palette.faint), state);
  pen.skip(14);
}

/// The value as large as it fits: four decimals in 32 px, all digits smaller in the line below.
void draw_value(Pen& pen, const CellRef& cell) {
  const Frame& frame = pen.frame;
  const widgets::CellWords words = widgets::cell_words(frame, cell);
  const double value = widgets::cell_value(frame, cell);
  const std::string text = std::isfinite(value) && value != 0 && (std::abs(value) >= 1e5 || std::abs(value) < 1e-4)
                               ? widgets::scientific(value)
                               : value == 0 ? "0" : widgets::fixed(value, 4);
  const float title = widgets::text_width(frame.fonts.sans19, words.title) + frame.metrics.px(10);
  ImFont* font = widgets::text_width(frame.fonts.mono32, text) + title <= pen.right - pen.left ? frame.fonts.mono32 : frame.fonts.sans19;
  pen.skip(22);
  widgets::draw_text(frame.fonts.sans19, {pen.left, pen.y + frame.metrics.px(4)}, Align::left_middle, packed(frame.palette.text), words.title);
  widgets::draw_text(font, {pen.right, pen.y}, Align::right_middle, packed(frame.palette.text), text);
  frame.landmarks.mark("inspector/value", {pen.left, pen.y - 16}, {pen.right, pen.y + 16});
  pen.skip(28);
  const float room = pen.right - pen.left;
  float x = pen.left;
  const auto say = [&](const std::string& piece, Rgb colour) {
    const std::string fitting = widgets::shortened(frame.fonts.sans15, piece, std::max(20.0f, room - (x - pen.left)));
    widgets::draw_text(frame.fonts.sans15, {x, pen.y}, Align::left_middle, packed(colour), fitting);
    x += widgets::text_width(frame.fonts.sans15, fitting);
  };
  say(words.subject, frame.palette.text);
  say(words.relation, frame.palette.dim);
  if (!words.object.empty()) say(words.object, frame.palette.text);
  pen.skip(19);
  widgets::draw_text(frame.fonts.sans13, {pen.left, pen.y}, Align::left_middle, packed(frame.palette.dim), words.place);
  pen.skip(19);
  widgets::draw_text(frame.fonts.mono12, {pen.left, pen.y}, Align::left_middle, packed(frame.palette.faint), widgets::in_full(value));
  pen.skip(10);
  if (!words.reason.empty()) {
    pen.skip(4);
    pen.prose(words.reason, frame.palette.dim);
  }
}

void draw_bar(Pen& pen, const CellRef& cell, std::size_t j, const std::string& name, double value, double top, bool hidden, bool dropped) {
  const Frame& frame = pen.frame;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const bool chosen = j == cell.column;
  const float number = widgets::text_width(frame.fonts.mono13, "−0.0000") + frame.metrics.px(8);
  const float index = widgets::text_width(frame.fonts.mono12, std::to_string(frame.model.n_tokens() - 1)) + frame.metrics.px(7);
  const float names = frame.metrics.px(frame.metrics.compact ? 52 : 62);
  const float from = pen.left + index + names, to = pen.right - number, half = frame.metrics.px(5);
  pen.skip(10);
  widgets::draw_text(frame.fonts.mono12, {pen.left, pen.y}, Align::left_middle, packed(frame.palette.faint), std::to_string(j));
  widgets::draw_text(frame.fonts.sans14, {pen.left + index, pen.y}, Align::left_middle,
                     packed(chosen ? frame.palette.text : hidden ? frame.palette.faint : frame.palette.dim),
                     widgets::shortened(frame.fonts.sans14, name, names - frame.metrics.px(4)));
  list->AddRectFilled({from, pen.y - half}, {to, pen.y + half}, packed(frame.palette.frame));
  if (hidden) {
    list->PushClipRect({from, pen.y - half}, {to, pen.y + half}, true);
    for (float x = from - 2 * half; x < to; x += frame.metrics.px(6))
      list->AddLine({x, pen.y + half}, {x + 2 * half, pen.y - half}, packed(frame.palette.hatch));
    list->PopClipRect();
  } else if (std::isfinite(value) && value > 0) {
    const double t = top > 0 ? std::min(1.0, value / top) : 0;
    list->AddRectFilled({from, pen.y - half}, {from + (to - from) * static_cast<float>(t), pen.y + half},
                        packed(render::colour_at(render::ColourMap::weights, frame.palette.dark, std::max(t, 0.15))));
  }
  const std::string text = hidden ? "hidden" : dropped ? "dropped" : widgets::fixed(value, 4);
  widgets::draw_text(hidden || dropped ? frame.fonts.sans13 : frame.fonts.mono13, {pen.right, pen.y}, Align::right_middle,
                     packed(hidden || dropped ? frame.palette.faint : frame.palette.text), text);
  pen.skip(9);
}

/// The row of a weight: to whom it goes, its sum and how spread it is.
void draw_weight_row(Pen& pen, const CellRef& cell) {
  const Frame& frame = pen.frame;
  const auto& tokens = frame.model.sequences[frame.view.sequence].tokens;
  const StageInfo& stage = core::attention::info(cell.stage);
  const arma::mat& numbers = stage.matrix(frame.trace, cell.head);
  const RowFacts facts = core::attention::row_facts(numbers, cell.row);
  const bool after_dropout = cell.stage == Stage::dropped_weights;
  pen.rule();
  pen.heading("Row of " + widgets::shortened(frame.fonts.sans16, tokens[cell.row], (pen.right - pen.left) * 0.6f));
  if (facts.largest > 0)
    pen.prose(tokens[cell.row] + " listens most to " + (facts.where == cell.row ? std::string("itself") : tokens[facts.where]) + ", " +
                  widgets::fixed(facts.largest, 4),
              frame.palette.dim);
  std::vector<std::size_t> order(numbers.n_cols);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (order.size() > most_bars) {
    std::partial_sort(order.begin(), order.begin() + most_bars, order.end(),
                      [&](std::size_t a, std::size_t b) { return numbers(cell.row, a) > numbers(cell.row, b); });
    order.resize(most_bars);
  }
  for (const std::size_t j : order)
    draw_bar(pen, cell, j, tokens[j], numbers(cell.row, j), core::attention::top_of_range(frame.model, cell.stage),
             frame.trace.mask(cell.row, j) == 0 && numbers(cell.row, j) == 0,
             after_dropout && frame.trace.heads[cell.head].dropout_mask(cell.row, j) == 0);
  if (numbers.n_cols > most_bars) {
    double rest = 0;
    for (std::size_t j = 0; j < numbers.n_cols; ++j) rest += numbers(cell.row, j);
    for (const std::size_t j : order) rest -= numbers(cell.row, j);
    pen.pair(std::to_string(numbers.n_cols - most_bars) + " other keys", widgets::fixed(rest, 4));
  }
  pen.skip(6);
  pen.pair("row sum", widgets::fixed(facts.sum, 4));
  if (cell.stage == Stage::weights) {
    const auto visible = static_cast<std::size_t>(arma::accu(frame.trace.mask.row(cell.row)));
    pen.pair("entropy, at most " + widgets::fixed(std::log2(std::max<double>(1, static_cast<double>(visible))), 2) + " bit",
             widgets::fixed(facts.entropy_bits, 4));
    pen.pair("looks at as if at", widgets::fixed(facts.effective_count, 2) + (facts.effective_count == 1 ? " key" : " keys"));
    if (frame.model.dropout.active())
      pen.pair("row sum after dropout",
               widgets::fixed(core::attention::row_facts(frame.trace.heads[cell.head].dropped_weights, cell.row).sum, 4));
  }
  if (after_dropout && frame.model.dropout.active())
    pen.prose("A row sums to 1 before dropout, not after: survivors are enlarged by 1/(1 − p), so that only the average over many masks is 1.",
              frame.palette.dim);
}

/// The same cell in every head.
void draw_other_heads(Pen& pen, const CellRef& cell) {
  const Frame& frame = pen.frame;
  const StageInfo& stage = core::attention::info(cell.stage);
  if (!stage.per_head || frame.trace.heads.size() < 2) return;
  pen.rule();
  pen.heading("The same cell in each head");
  for (std::size_t h = 0; h < std::min<std::size_t>(frame.trace.heads.size(), 16); ++h)
    pen.pair("head " + std::to_string(h), widgets::fixed(stage.matrix(frame.trace, h)(cell.row, cell.column), 4));
}

void draw_plain_row(Pen& pen, const CellRef& cell) {
  const Frame& frame = pen.frame;
  const arma::mat& numbers = core::attention::info(cell.stage).matrix(frame.trace, cell.head);
  const RowFacts facts = core::attention::row_facts(numbers, cell.row);
  if (numbers.n_cols < 2) return;
  pen.rule();
  pen.heading("Its row");
  pen.pair("smallest", widgets::fixed(facts.smallest, 4));
  pen.pair("largest", widgets::fixed(facts.largest, 4) + " at " + std::to_string(facts.where));
}

}  // namespace

void draw_inspector(const Frame& frame) {
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  Pen pen{frame, origin.x, origin.x + ImGui::GetContentRegionAvail().x, origin.y};
  const std::optional<CellRef>& cell = frame.view.pinned ? frame.view.pinned : frame.view.hovered;
  draw_top(pen, frame.view.pinned ? "pinned · Esc releases" : cell ? "hovered · click pins" : "nothing pinned");
  if (!cell) {
    pen.skip(4);
    pen.prose("Hover a cell to see what it is. Click to keep it here.", frame.palette.dim);
  } else {
    draw_value(pen, *cell);
    const Colouring colouring = core::attention::info(cell->stage).colouring;
    const bool square = core::attention::info(cell->stage).columns == Columns::tokens;
    if (colouring == Colouring::weights && square)
      draw_weight_row(pen, *cell);
    else if (colouring == Colouring::signed_values)
      draw_plain_row(pen, *cell);
    draw_other_heads(pen, *cell);
  }
  ImGui::SetCursorScreenPos(origin);
  ImGui::Dummy({1, pen.y - origin.y + frame.metrics.px(8)});
}

}  // namespace app::panels
