#include "core/graph/explain.hpp"

#include <algorithm>
#include <cmath>

#include "core/graph/explain_rules.hpp"
#include "core/graph/reach.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/steps.hpp"

namespace core::explain {
namespace {

/// The runs of cells of one row or column that are not −inf.
std::vector<Cells> runs_that_count(const Model& model, const Trace& trace, const Cells& line) {
  const bool is_row = line.row1 == line.row0 + 1 && line.column1 > line.column0 + 1;
  std::vector<Cells> runs;
  for (std::size_t k = 0; k < line.count(); ++k) {
    const Place place = line.at(k);
    if (number_at(model, trace, place) == -arma::datum::inf) continue;
    if (!runs.empty() && is_row && runs.back().column1 == place.column)
      ++runs.back().column1;
    else if (!runs.empty() && !is_row && runs.back().row1 == place.row)
      ++runs.back().row1;
    else
      runs.push_back({line.source, line.head, place.row, place.row + 1, place.column, place.column + 1});
  }
  return runs;
}

/// Whether a part is the scores of a softmax in which those that are −inf add nothing; else they may give
/// NaN.
bool skips_hidden(const Rule& rule, const Part& part) {
  return rule.operation == Operation::softmax && part.reach == Reach::softmax_line &&
         rule.parts[1].reach == Reach::nothing;
}

/// What remains of a rectangle around the cells that were typed over, as rectangles.
std::vector<Cells> without_typed_cells(const Model& model, const Trace& trace, const Cells& cells) {
  const auto& typed = model.given.cells;
  const auto inside = [&](const attention::GivenCell& cell) {
    const auto& p = cell.place;
    return Source(p.stage) == cells.source && p.sequence == trace.sequence &&
           p.head == matrix_of_head(model, p.stage, cells.head) && cells.row0 <= p.row &&
           p.row < cells.row1 && cells.column0 <= p.column && p.column < cells.column1;
  };
  const auto first = std::find_if(typed.begin(), typed.end(), inside);
  if (first == typed.end()) return {cells};
  const auto [row, column] = std::pair(first->place.row, first->place.column);
  Cells above = cells, left = cells, right = cells, below = cells;
  above.row1 = left.row0 = right.row0 = row;
  below.row0 = left.row1 = right.row1 = row + 1;
  left.column1 = column, right.column0 = column + 1;
  std::vector<Cells> rest;
  for (const Cells& part : {above, left, right, below}) {
    if (part.count() == 0) continue;
    const std::vector<Cells> more = without_typed_cells(model, trace, part);
    rest.insert(rest.end(), more.begin(), more.end());
  }
  return rest;
}

/// The cell of the first part whose product with the second is largest.
std::optional<Place> largest_term(const Model& model, const Trace& trace, const Rule& rule,
                                  const CellAddress& cell) {
  const auto parts = parts_of(model, rule);
  const auto first = reached(model, trace, parts[0], cell);
  const auto second = reached(model, trace, parts[1], cell);
  if (!first || !second) return std::nullopt;
  std::size_t best = 0;
  double largest = -1;
  for (std::size_t k = 0; k < first->count(); ++k) {
    const double term =
        std::abs(number_at(model, trace, first->at(k)) * number_at(model, trace, second->at(k)));
    if (term > largest) largest = term, best = k;
  }
  return first->at(best);
}

std::optional<CellAddress> before(const Model& model, const Trace& trace, const CellAddress& cell) {
  const Rule& rule = rule_for(model, trace, cell);
  std::optional<Place> place;
  if (rule.before == Before::largest_term) place = largest_term(model, trace, rule, cell);
  if (rule.before == Before::first_part) {
    // What the softmax runs over, or a norm measures, stands for its cell in the same place.
    const Part first = parts_of(model, rule)[0];
    const bool whole_line = rule.operation == Operation::softmax || rule.operation == Operation::normed;
    const Part part{first.source, whole_line ? Reach::same_cell : first.reach};
    if (const auto cells = reached(model, trace, part, cell)) place = cells->at(0);
  }
  if (!place) return std::nullopt;
  return CellAddress{std::get<Stage>(place->source), place->head, place->row, place->column};
}

/// What a cell reaches as a part; a score of a softmax the weights of keys that are seen, a hidden one its
/// own.
std::vector<Cells> seen_by(const Model& model, const Trace& trace, const Rule& rule, const Part& part,
                           const CellAddress& cell) {
  const std::vector<Cells> reached = reached_by(model, trace, rule, part, cell);
  if (!skips_hidden(rule, part) || reached.empty()) return reached;
  const Source scores = part.source;
  if (number_at(model, trace, {scores, cell.head, cell.row, cell.column}) == -arma::datum::inf)
    return {{rule.stage, cell.head, cell.row, cell.row + 1, cell.column, cell.column + 1}};
  std::vector<Cells> seen;
  for (Cells line : reached) {
    line.source = scores;
    for (Cells run : runs_that_count(model, trace, line)) {
      run.source = rule.stage;
      seen.push_back(run);
    }
  }
  return seen;
}

/// The rows of a rectangle whose cells are made by the rule; a rule can change from row to row only.
void append_made_by(const Model& model, const Trace& trace, const Rule& rule, const Cells& cells,
                    std::vector<Cells>& all) {
  bool goes_on = false;
  for (std::size_t i = cells.row0; i < cells.row1; ++i) {
    const bool made = &rule_for(model, trace, {rule.stage, cells.head, i, cells.column0}) == &rule;
    if (made && goes_on)
      ++all.back().row1;
    else if (made)
      all.push_back({cells.source, cells.head, i, i + 1, cells.column0, cells.column1});
    goes_on = made;
  }
}

}  // namespace

Explanation explain(const Model& model, const Trace& trace, const CellAddress& cell) {
  Explanation explanation{cell, {}, 0};
  for (const CellAddress& address : worked_out(model, trace, cell))
    for (Step& step : steps_of(model, trace, address)) explanation.steps.push_back(std::move(step));
  explanation.result = explanation.steps.back().result;
  return explanation;
}

std::vector<CellAddress> worked_out(const Model& model, const Trace& trace, const CellAddress& cell) {
  std::vector<CellAddress> chain{cell};
  while (const auto earlier = before(model, trace, chain.back())) chain.push_back(*earlier);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

std::vector<Cells> operands(const Model& model, const Trace& trace, const CellAddress& cell) {
  const Rule& rule = rule_for(model, trace, cell);
  std::vector<Cells> all;
  for (const Part& part : parts_of(model, rule)) {
    const auto cells = reached(model, trace, part, cell);
    if (!cells) continue;
    if (skips_hidden(rule, part)) {
      const Place own{part.source, cell.head, cell.row, cell.column};
      if (number_at(model, trace, own) == -arma::datum::inf) {  // of a hidden key that alone makes the 0
        all.push_back({own.source, own.head, own.row, own.row + 1, own.column, own.column + 1});
        continue;
      }
      const auto runs = runs_that_count(model, trace, *cells);
      all.insert(all.end(), runs.begin(), runs.end());
    } else {
      all.push_back(*cells);
    }
  }
  return all;
}

std::vector<Cells> results(const Model& model, const Trace& trace, const CellAddress& cell) {
  std::vector<Cells> all;
  const attention::StageSet shown = shown_stages(model);
  for (const Rule& rule : rules()) {
    if (!contains(shown, rule.stage)) continue;
    for (const Part& part : parts_of(model, rule))
      for (const Cells& reached : seen_by(model, trace, rule, part, cell))
        for (const Cells& cells : without_typed_cells(model, trace, reached))
          append_made_by(model, trace, rule, cells, all);
  }
  return all;
}

Folded fold(const Step& step, std::size_t most_terms) {
  std::vector<std::size_t> terms;
  for (std::size_t k = 0; k < step.lines.size(); ++k)
    if (step.lines[k].role == Line::term) terms.push_back(k);
  std::vector<bool> left_out(step.lines.size(), false);
  Folded folded;
  if (terms.size() > most_terms + 1) {
    const auto size = [&](std::size_t k) {
      const double value = std::abs(step.lines[k].value);
      return std::isnan(value) ? arma::datum::inf : value;
    };
    std::nth_element(
        terms.begin(), terms.begin() + static_cast<std::ptrdiff_t>(most_terms), terms.end(),
        [&](std::size_t a, std::size_t b) { return size(a) > size(b) || (size(a) == size(b) && a < b); });
    for (std::size_t k = most_terms; k < terms.size(); ++k) {
      left_out[terms[k]] = true;
      folded.rest += step.lines[terms[k]].value;
      ++folded.others;
    }
  }
  for (std::size_t k = 0; k < step.lines.size(); ++k)
    if (!left_out[k]) folded.lines.push_back(k);
  return folded;
}

}  // namespace core::explain
