#include "app/ui/panels/inspector/inspector_query.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "app/session/navigation.hpp"
#include "app/ui/panels/inspector/inspector_row.hpp"
#include "app/ui/panels/tokens/token_chips.hpp"
#include "app/ui/widgets/number_text.hpp"
#include "core/graph/row_facts.hpp"

namespace app::panels {
namespace {

using core::attention::RowFacts;
using widgets::Align;
using widgets::Pen;

constexpr std::size_t most_keys = 3;

const core::attention::Sequence& sequence_of(const Frame& frame) {
  return frame.shown.model.sequences[frame.shown.look.sequence];
}

/// The visible keys with the largest weights of the query's row, the largest first.
std::vector<std::size_t> top_keys(const Frame& frame, const arma::rowvec& weights, std::size_t query) {
  std::vector<std::size_t> keys;
  for (std::size_t j = 0; j < weights.n_elem; ++j)
    if (frame.shown.trace.mask(query, j) != 0) keys.push_back(j);
  const auto count = static_cast<std::ptrdiff_t>(std::min(keys.size(), most_keys));
  std::partial_sort(keys.begin(), keys.begin() + count, keys.end(), [&](std::size_t a, std::size_t b) {
    return weights[a] > weights[b] || (weights[a] == weights[b] && a < b);
  });
  keys.resize(static_cast<std::size_t>(count));
  return keys;
}

/// One key with its weight as a bar and as a link that pins the weight among the stages.
void draw_key(Pen& pen, std::size_t head, std::size_t query, std::size_t key) {
  const Frame& frame = pen.frame;
  const double weight = frame.shown.trace.heads[head].weights(query, key);
  const float middle = pen.y + frame.metrics.px(9), half = frame.metrics.px(5);
  const float index = pen.left + frame.metrics.px(14) +
                      widgets::text_width(frame.fonts.mono12, std::to_string(frame.shown.model.n_keys() - 1));
  const float from = pen.left + frame.metrics.px(frame.metrics.compact ? 92 : 110);
  const float to = pen.right - widgets::text_width(frame.fonts.mono13, "0.0000") - frame.metrics.px(10);
  widgets::draw_text(frame.fonts.mono12, {index, middle}, Align::right_middle, packed(frame.palette.faint),
                     std::to_string(key));
  const float words = index + frame.metrics.px(8);
  widgets::draw_text(frame.fonts.sans14, {words, middle}, Align::left_middle, packed(frame.palette.dim),
                     widgets::shortened(frame.fonts.sans14, sequence_of(frame).keys()[key],
                                        from - words - frame.metrics.px(4)));
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled({from, middle - half}, {to, middle + half}, packed(frame.palette.control.rest));
  const float share = static_cast<float>(std::clamp(weight, 0.0, 1.0));
  list->AddRectFilled({from, middle - half}, {from + (to - from) * share, middle + half},
                      packed(frame.palette.head(head)));
  const std::string name = "inspector/weight/" + std::to_string(head) + "/" + std::to_string(key);
  if (widgets::link(frame, name, frame.fonts.mono13, {pen.right, middle}, Align::right_middle,
                    frame.palette.text, widgets::fixed(weight, 4)))
    frame.commands.look([cell = CellRef{Stage::weights, head, query, key}](View& v) {
      v.look.tab = Tab::stages;
      follow(v, cell);
    });
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("Shows among the stages how this weight comes about");
  pen.skip(19);
}

void draw_head_row(Pen& pen, std::size_t head, std::size_t query) {
  const Frame& frame = pen.frame;
  const arma::rowvec weights = frame.shown.trace.heads[head].weights.row(query);
  const RowFacts facts = core::attention::row_facts(weights);
  pen.rule();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float middle = pen.y + frame.metrics.px(6), half = frame.metrics.px(5);
  list->AddRectFilled({pen.left, middle - half}, {pen.left + 2 * half, middle + half},
                      packed(frame.palette.head(head)), frame.metrics.px(2));
  widgets::draw_text(frame.fonts.sans15, {pen.left + frame.metrics.px(18), middle}, Align::left_middle,
                     packed(frame.palette.text), "head " + std::to_string(head));
  const bool is_number = !weights.has_nan();
  widgets::draw_text(frame.fonts.mono13, {pen.right, middle}, Align::right_middle, packed(frame.palette.dim),
                     is_number ? widgets::fixed(facts.entropy_bits, 2) + " bit" : "NaN");
  pen.skip(20);
  if (!is_number)
    return pen.prose("Its weights are not numbers, so nothing can be said of them.", frame.palette.dim);
  double rest = facts.sum;
  const std::vector<std::size_t> keys = top_keys(frame, weights, query);
  for (const std::size_t key : keys) {
    draw_key(pen, head, query, key);
    rest -= weights[key];
  }
  const auto visible = static_cast<std::size_t>(arma::accu(frame.shown.trace.mask.row(query)));
  if (visible <= keys.size()) return;
  const float at = pen.y + frame.metrics.px(9);
  widgets::draw_text(
      frame.fonts.sans13, {pen.left + frame.metrics.px(18), at}, Align::left_middle,
      packed(frame.palette.faint),
      std::to_string(visible - keys.size()) + (visible - keys.size() == 1 ? " other key" : " other keys"));
  widgets::draw_text(frame.fonts.mono13, {pen.right, at}, Align::right_middle, packed(frame.palette.faint),
                     widgets::fixed(std::max(rest, 0.0), 4));
  pen.skip(18);
}

}  // namespace

void draw_query(Pen& pen) {
  const Frame& frame = pen.frame;
  const auto query = frame.shown.look.tokens.query();
  if (!query) {
    pen.skip(4);
    pen.prose("Hover a query to see to whom it listens. Click to keep it here; ↑ and ↓ move on.",
              frame.palette.dim);
    return;
  }
  const std::vector<std::size_t> heads = heads_with_lines(frame);
  pen.skip(20);
  widgets::draw_text(frame.fonts.sans19, {pen.left, pen.y}, Align::left_middle, packed(frame.palette.text),
                     "Query");
  const std::string number = " " + std::to_string(*query);
  const float room = pen.right - pen.left - widgets::text_width(frame.fonts.sans19, "Query  " + number);
  widgets::draw_text(
      frame.fonts.sans19, {pen.right, pen.y}, Align::right_middle, packed(frame.palette.text),
      widgets::shortened(frame.fonts.sans19, sequence_of(frame).tokens[*query], room) + number);
  pen.skip(24);
  const auto visible = static_cast<std::size_t>(arma::accu(frame.shown.trace.mask.row(*query)));
  const std::string words =
      "sees " + std::to_string(visible) + " of " + std::to_string(frame.shown.model.n_keys()) + " keys, in " +
      std::to_string(heads.size()) + " of " + std::to_string(frame.shown.model.n_heads) +
      (frame.shown.model.n_heads == 1 ? " head" : " heads");
  widgets::draw_text(frame.fonts.sans14, {pen.left, pen.y}, Align::left_middle, packed(frame.palette.dim),
                     words);
  pen.skip(8);
  for (std::size_t k = 0; k < std::min(heads.size(), most_heads); ++k) draw_head_row(pen, heads[k], *query);
  if (heads.size() > most_heads) {
    pen.rule();
    pen.prose("and " + std::to_string(heads.size() - most_heads) + " more heads", frame.palette.dim);
  }
}

}  // namespace app::panels
