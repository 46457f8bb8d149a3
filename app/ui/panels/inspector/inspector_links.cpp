#include "app/ui/panels/inspector/inspector_links.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "app/session/navigation.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

using core::explain::Cells;
using core::explain::Explanation;
using core::explain::Line;
using std::to_string;
using widgets::Pen;

constexpr std::size_t most_links = 6, most_makers = 12;

/// The cell of a rectangle that lies nearest to the row and the column of another.
CellRef nearest(const Cells& cells, const CellRef& to) {
  return {std::get<Stage>(cells.source), cells.head, std::clamp(to.row, cells.row0, cells.row1 - 1),
          std::clamp(to.column, cells.column0, cells.column1 - 1)};
}

/// The token, or what it is when its name is only its number.
std::string token_words(const std::vector<std::string>& tokens, const char* what, std::size_t index) {
  const std::string& token = tokens[index];
  return token == to_string(index) ? what + (" " + token) : widgets::visible_token(token);
}

std::string place_words(const Frame& frame, const Cells& cells) {
  const auto& stage = core::attention::info(std::get<Stage>(cells.source));
  const core::attention::Sequence& sequence = frame.displayed.sequence();
  std::string words = cells.count() == 1 ? stage.one : stage.title;
  if (stage.per_head && frame.displayed.model.n_heads > 1)
    words += ", " + widgets::head_words(frame.displayed.model, stage.stage, cells.head);
  if (cells.row1 - cells.row0 == 1)
    words += ", " + token_words(row_tokens(stage, sequence), "row", cells.row0);
  if (cells.column1 - cells.column0 == 1 && stage.columns != core::attention::Columns::single) {
    const bool key = stage.columns == core::attention::Columns::tokens;
    words += key ? " → " + token_words(sequence.keys(), "key", cells.column0)
                 : ", column " + to_string(cells.column0);
  }
  return words;
}

/// What heads share is named once, as that of the head it is asked for, else as their first one's.
std::vector<Cells> each_once(const core::attention::Model& model, std::size_t head, std::vector<Cells> all) {
  std::vector<Cells> once;
  for (Cells& cells : all) {
    if (const Stage* stage = std::get_if<Stage>(&cells.source)) {
      const std::size_t matrix = matrix_of_head(model, *stage, cells.head);
      const bool is_own =
          core::attention::info(*stage).per_head && matrix == matrix_of_head(model, *stage, head);
      cells.head = is_own ? head : head_of_matrix(model, *stage, matrix);
    }
    if (std::ranges::find(once, cells) == once.end()) once.push_back(cells);
  }
  return once;
}

/// Follows single cells downstream; what follows several cells is listed and not followed.
std::vector<Cells> downstream(const Frame& frame, CellRef cell) {
  std::vector<Cells> all;
  while (true) {
    const std::vector<Cells> next =
        each_once(frame.displayed.model, cell.head,
                  core::explain::results(frame.displayed.model, frame.displayed.trace, cell));
    all.insert(all.end(), next.begin(), next.end());
    if (next.size() != 1 || next[0].count() != 1) return all;
    cell = nearest(next[0], cell);
  }
}

}  // namespace

void draw_makers(Pen& pen, const Explanation& explanation) {
  const auto& model = pen.frame.displayed.model;
  if (explanation.cell.stage != Stage::output || model.n_heads < 2) return;
  std::vector<double> by_head(model.n_heads, 0);
  std::size_t n_terms = 0;
  double bias = 0;
  for (const auto& step : explanation.steps)
    for (const Line& line : step.lines) {
      if (step.cell == explanation.cell && line.role == Line::term &&
          line.label.kind == core::explain::Label::head) {
        by_head[line.label.index] += line.value;
        ++n_terms;
      }
      if (line.form == core::explain::Form::addition) bias = line.b.value;
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
  for (std::size_t k = most_makers; k < order.size(); ++k) rest += by_head[order[k]];
  if (order.size() > most_makers) order.resize(most_makers);
  std::ranges::sort(order);
  for (const std::size_t h : order) pen.share("head " + to_string(h), by_head[h], end);
  if (by_head.size() > most_makers)
    pen.share(to_string(by_head.size() - most_makers) + " others", rest, std::max(end, size(rest)));
  if (model.projections && model.projections->output && model.projections->output->bias)
    pen.share("bias", bias, end);
}

void draw_leads_to(Pen& pen, const CellRef& cell) {
  const Frame& frame = pen.frame;
  const std::vector<Cells> all = downstream(frame, cell);
  if (all.empty()) return;
  pen.rule();
  pen.heading("Leads to");
  for (std::size_t k = 0; k < std::min(all.size(), most_links); ++k) {
    const CellRef there = nearest(all[k], cell);
    const std::string number = all[k].count() == 1 ? widgets::inspected(widgets::cell_value(frame, there))
                                                   : to_string(all[k].count()) + " cells";
    if (pen.linked_pair("inspector/leads/" + to_string(k), place_words(frame, all[k]), number))
      frame.commands.add(FollowCell{there});
  }
  if (all.size() > most_links) pen.prose("and likewise in every head", frame.palette.dim);
}

}  // namespace app::panels
