#include "core/graph/explain.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/graph/operations.hpp"

/// Derived from the letters of the inputs: the operands of a cell, its results, and the chain of cells that
/// explains it.
namespace core::graph {
namespace {

using attention::StageShape;

SourceRect one_cell(Source source, std::size_t head, std::size_t row, std::size_t column) {
  return {source, head, row, row + 1, column, column + 1};
}

/// Returns one number, without computing a whole stage of tokens × tokens for it.
double number_at(const Model& m, const Trace& t, const SourceCell& place) {
  if (const auto* stage = std::get_if<Stage>(&place.source)) {
    const attention::StageMatrix& all = t.at(*stage, place.head);
    const bool is_large = attention::info(*stage).columns == attention::Columns::tokens;
    return is_large ? all(place.row, place.column) : (*all)(place.row, place.column);
  }
  const MatrixName name = std::get<MatrixName>(place.source);
  return (*find_matrix(m, matrix_ref(m, name, t.sequence, place.head)))->at(place.row, place.column);
}

bool is_per_head(const Graph& g, const Model& m, const Source& source) {
  if (const auto* stage = std::get_if<Stage>(&source)) return g.find(*stage)->heads != NodeHeads::shared;
  return source == Source(MatrixName::score_bias) && m.additions.score_bias.size() > 1;
}

/// Returns the first head that reads the nth matrix of a node.
std::size_t first_head_of(const Graph& g, const Model& m, const Node& node, std::size_t nth) {
  std::size_t head = 0;
  while (head + 1 < m.n_heads && nth_matrix(g, node, head) != nth) ++head;
  return head;
}

/// Returns the rows and columns of a source, none if the model does not have it; for a hidden stage as its
/// letters say.
StageShape shape_of(const Graph& g, const Model& m, const Trace& t, const Source& source, std::size_t head) {
  const auto* stage = std::get_if<Stage>(&source);
  if (!stage) {
    const auto* numbers = find_matrix(m, matrix_ref(m, std::get<MatrixName>(source), t.sequence, head));
    return numbers ? StageShape{numbers->n_rows(), numbers->n_cols()} : StageShape();
  }
  if (!is_internal(*stage)) {
    const auto& numbers = t.at(*stage, head);
    return {numbers.n_rows(), numbers.n_cols()};
  }
  const std::vector<Input>& inputs = g.find(*stage)->operation->inputs;
  if (inputs.empty()) return {};
  StageShape shape = shape_of(g, m, t, inputs[0].source, head);
  for (const Input& input : inputs) {
    if (input.layout || !input.is_read()) continue;
    const StageShape of = shape_of(g, m, t, input.source, head);
    if (input.cells[0] == 'i') shape.n_rows = of.n_rows;
    if (input.cells[0] == 'j') shape.n_cols = of.n_rows;
    if (input.cells[1] == 'j') shape.n_cols = of.n_cols;
  }
  return shape;
}

/// Returns the sizes of the heads in a matrix with that many columns.
HeadSizes sizes_of_split(const Model& m, const Node& node, std::size_t n_columns) {
  const std::size_t n = node.heads == NodeHeads::per_kv_head ? m.kv_heads() : m.n_heads;
  return {n, node.has_key_rows ? m.n_keys() : m.n_tokens(), n_columns / n};
}

/// Adds cells to a list, extending a rectangle that they continue, if any.
void join(std::vector<SourceRect>& all, const SourceRect& cells) {
  for (SourceRect& other : all) {
    if (other.source != cells.source || other.head != cells.head) continue;
    const bool same_rows = other.row0 == cells.row0 && other.row1 == cells.row1,
               same_columns = other.column0 == cells.column0 && other.column1 == cells.column1;
    if (same_rows && same_columns) return;
    if (same_rows && other.column1 == cells.column0) return void(other.column1 = cells.column1);
    if (same_columns && other.row1 == cells.row0) return void(other.row1 = cells.row1);
  }
  all.push_back(cells);
}

/// Returns the runs of cells of one row or column that are not −∞.
std::vector<SourceRect> finite_score_runs(const Model& m, const Trace& t, const SourceRect& line) {
  std::vector<SourceRect> runs;
  bool in_run = false;
  for (std::size_t k = 0; k < line.count(); ++k) {
    const SourceCell p = line.at(k);
    const bool counts = number_at(m, t, p) != -infinity;
    if (counts && !in_run) runs.push_back(one_cell(p.source, p.head, p.row, p.column));
    if (counts) runs.back().row1 = p.row + 1, runs.back().column1 = p.column + 1;
    in_run = counts;
  }
  return runs;
}

bool is_given(const Cell& c) {
  if (is_internal(c.node.stage)) return false;
  const explain::CellAddress address{c.node.stage, c.head, c.i, c.j};
  return c.model.given.find(c.node.stage) ||
         c.model.given.find(explain::given_cell_address(c.model, c.trace.sequence, address));
}

/// Returns whether each head of an operation reads input k of all heads.
bool reads_all_heads(const Operation& operation, std::size_t k) {
  const auto* norm = dynamic_cast<const Normalize*>(&operation);
  return norm && k == 0 && norm->is_over_all_heads();
}

/// Returns the cells of each head's matrix, those of the selected head as they are.
std::vector<SourceRect> of_all_heads(const Cell& c, SourceRect cells) {
  const Node& from = *c.graph.find(std::get<Stage>(cells.source));
  const std::size_t own = cells.head, own_nth = nth_matrix(c.graph, from, own);
  std::vector<SourceRect> all;
  for (std::size_t nth = 0; nth < n_matrices(from, c.model); ++nth) {
    cells.head = nth == own_nth ? own : first_head_of(c.graph, c.model, from, nth);
    all.push_back(cells);
  }
  return all;
}

std::vector<SourceRect> operands_of(const Cell& c) {
  std::vector<SourceRect> all;
  if (is_given(c)) return all;
  const Operation& operation = *c.node.operation;
  for (std::size_t k = 0; k < operation.inputs.size(); ++k) {
    if (!operation.uses(c, k)) continue;
    const SourceRect cells = c.cells(k);
    std::vector<SourceRect> parts;
    if (c.is_internal(k)) {
      for (std::size_t n = 0; n < cells.count(); ++n)
        for (const SourceRect& further : operands_of(c.inner(k, n))) join(parts, further);
    } else if (k == 0 && operation.ignores_negative_infinity()) {
      const SourceCell own = cells.at(*operation.previous_operand(c));
      if (number_at(c.model, c.trace, own) == -infinity)  // a masked key alone gives the weight 0
        parts = {one_cell(own.source, own.head, own.row, own.column)};
      else
        parts = finite_score_runs(c.model, c.trace, cells);
    } else if (cells.count() > 0) {
      parts = reads_all_heads(operation, k) ? of_all_heads(c, cells) : std::vector{cells};
    }
    all.insert(all.end(), parts.begin(), parts.end());
  }
  return all;
}

/// Returns the cell that is explained before another.
std::optional<explain::CellAddress> previous_cell(const Cell& c) {
  // A weight after dropout is explained by the weight and the factor alone.
  if (is_given(c) || c.node.stage == Stage::dropped_weights) return std::nullopt;
  const Operation& operation = *c.node.operation;
  const Stage* from = operation.inputs.empty() ? nullptr : operation.inputs[0].stage();
  if (!from || !operation.uses(c, 0) || dynamic_cast<const Parameter*>(c.graph.find(*from)->operation.get()))
    return std::nullopt;
  const auto k = operation.previous_operand(c);
  if (!k) return std::nullopt;
  if (c.is_internal(0)) return previous_cell(c.inner(0, *k));
  const SourceCell place = c.cells(0).at(*k);
  return explain::CellAddress{*from, place.head, place.row, place.column};
}

/// Finds the cells that depend on some others: rectangles of stages that are shown.
struct DependentFinder {
  const Graph& g;
  const Model& m;
  const Trace& t;
  NodeSet existing_nodes = graph::existing_nodes(g, m);
  std::vector<SourceRect> found = {};

  void find(const SourceRect& cells) {
    for (const Node& node : g.nodes) {
      if (!existing_nodes[index(node.stage)] || (!is_internal(node.stage) && m.given.find(node.stage)))
        continue;
      const std::vector<Input>& inputs = node.operation->inputs;
      for (std::size_t k = 0; k < inputs.size(); ++k)
        if (inputs[k].source == cells.source && inputs[k].is_read() && !inputs[k].numbers)
          for (const SourceRect& dependent : dependents_of(node, k, cells)) add(node, k, dependent);
    }
  }

 private:
  /// Returns the cells of a node that depend on some cells of its input k, by its letters.
  std::vector<SourceRect> dependents_of(const Node& node, std::size_t k, const SourceRect& cells) const {
    const Input& input = node.operation->inputs[k];
    if (input.layout)
      return node.heads == NodeHeads::shared ? combined(node, input, cells) : split(node, input, cells);
    const Node& from = *g.find(*input.stage());
    const bool both_have_heads = from.heads != NodeHeads::shared && node.heads != NodeHeads::shared &&
                                 !reads_all_heads(*node.operation, k);
    std::vector<SourceRect> all;
    for (std::size_t h = 0; h < (node.heads == NodeHeads::shared ? 1 : m.n_heads); ++h) {
      const std::size_t nth = input.heads ? (*input.heads)[nth_matrix(g, node, h)] : nth_matrix(g, from, h);
      if (both_have_heads && nth != nth_matrix(g, from, cells.head)) continue;
      const StageShape shape = shape_of(g, m, t, node.stage, h);
      SourceRect dependent{node.stage, h, 0, shape.n_rows, 0, shape.n_cols};
      if (input.cells[0] == 'i') dependent.row0 = cells.row0, dependent.row1 = cells.row1;
      if (input.cells[0] == 'j') dependent.column0 = cells.row0, dependent.column1 = cells.row1;
      if (input.cells[1] == 'j') dependent.column0 = cells.column0, dependent.column1 = cells.column1;
      if (input.cells[1] == 'p') {  // in a whole row the partners are the row itself
        dependent.column0 = cells.column0, dependent.column1 = cells.column1;
        if (cells.column1 == cells.column0 + 1) {
          dependent.column0 = node.operation->column(m, cells.row0, cells.column0);
          dependent.column1 = dependent.column0 + 1;
        }
      }
      if (k == 0 && node.operation->ignores_negative_infinity()) {
        for (const SourceRect& run : dependent_weights(node, dependent, cells)) all.push_back(run);
      } else {
        all.push_back(dependent);
      }
    }
    return all;
  }

  std::vector<SourceRect> combined(const Node& node, const Input& input, const SourceRect& cells) const {
    std::vector<SourceRect> all;
    for (std::size_t n = 0; n < cells.count(); ++n) {
      const SourceCell from = cells.at(n);
      const CombinedCell to = input.layout->combine({from.head, from.row, from.column}, combined_sizes(m));
      join(all, one_cell(node.stage, 0, to.row, to.column));
    }
    return all;
  }

  std::vector<SourceRect> split(const Node& node, const Input& input, const SourceRect& cells) const {
    const HeadSizes sizes = sizes_of_split(m, node, shape_of(g, m, t, cells.source, 0).n_cols);
    std::vector<SourceRect> all;
    for (std::size_t n = 0; n < cells.count(); ++n) {
      const HeadCell to = input.layout->split({cells.at(n).row, cells.at(n).column}, sizes);
      for (std::size_t h = 0; h < m.n_heads; ++h)
        if (nth_matrix(g, node, h) == to.head) join(all, one_cell(node.stage, h, to.row, to.column));
    }
    return all;
  }

  /// Returns the weights of a row or column of scores that a score contributes to: of keys that are not −∞,
  /// or only its own.
  std::vector<SourceRect> dependent_weights(const Node& node, SourceRect dependent,
                                            const SourceRect& cell) const {
    if (number_at(m, t, cell.at(0)) == -infinity)
      return {one_cell(node.stage, dependent.head, cell.row0, cell.column0)};
    dependent.source = cell.source;
    std::vector<SourceRect> runs = finite_score_runs(m, t, dependent);
    for (SourceRect& run : runs) run.source = node.stage;
    return runs;
  }

  /// Adds the rows of a rectangle that use input k, without overridden cells.
  void add(const Node& node, std::size_t k, const SourceRect& dependent) {
    std::vector<SourceRect> rows;
    for (std::size_t i = dependent.row0; i < dependent.row1; ++i)
      if (node.operation->uses({g, node, m, t, dependent.head, i, dependent.column0}, k))
        join(rows, {dependent.source, dependent.head, i, i + 1, dependent.column0, dependent.column1});
    for (const SourceRect& used : rows)
      if (is_internal(node.stage))
        find(used);
      else
        for (const SourceRect& cells : without_overrides(used))
          if (std::ranges::find(found, cells) == found.end()) found.push_back(cells);
  }

  /// Returns the rectangle without its overridden cells, as rectangles.
  std::vector<SourceRect> without_overrides(const SourceRect& cells) const {
    const auto inside = [&](const attention::GivenCell& cell) {
      const auto& p = cell.place;
      return Source(p.stage) == cells.source && p.sequence == t.sequence &&
             p.head == matrix_of_head(m, p.stage, cells.head) && cells.row0 <= p.row && p.row < cells.row1 &&
             cells.column0 <= p.column && p.column < cells.column1;
    };
    const auto first = std::ranges::find_if(m.given.cells, inside);
    if (first == m.given.cells.end()) return {cells};
    const auto [row, column] = std::pair(first->place.row, first->place.column);
    SourceRect above = cells, left = cells, right = cells, below = cells;
    above.row1 = left.row0 = right.row0 = row;
    below.row0 = left.row1 = right.row1 = row + 1;
    left.column1 = column, right.column0 = column + 1;
    std::vector<SourceRect> rest;
    for (const SourceRect& part : {above, left, right, below})
      if (part.count() > 0)
        for (const SourceRect& more : without_overrides(part)) rest.push_back(more);
    return rest;
  }
};

}  // namespace

bool Cell::is_internal(std::size_t k) const {
  const Stage* stage = node.operation->inputs[k].stage();
  return stage && graph::is_internal(*stage);
}

SourceRect Cell::cells(std::size_t k) const {
  const Input& input = node.operation->inputs[k];
  const std::size_t own = !is_per_head(graph, model, input.source) ? 0
                          : input.heads ? first_head_of(graph, model, *graph.find(*input.stage()),
                                                        (*input.heads)[nth_matrix(graph, node, head)])
                                        : head;
  const StageShape shape = input.numbers ? StageShape{input.numbers->n_rows(), input.numbers->n_cols()}
                                         : shape_of(graph, model, trace, input.source, own);
  if (shape.n_rows == 0) return {input.source, own};
  if (input.layout && node.heads == NodeHeads::shared) {
    const HeadCell from = input.layout->split({i, j}, combined_sizes(model));
    return one_cell(input.source, from.head, from.row, from.column);
  }
  if (input.layout) {
    const HeadSizes sizes = sizes_of_split(model, node, shape.n_cols);
    const CombinedCell from = input.layout->combine({nth_matrix(graph, node, head), i, j}, sizes);
    return one_cell(input.source, 0, from.row, from.column);
  }
  SourceRect cells{input.source, own, 0, shape.n_rows, 0, shape.n_cols};
  const auto choose = [&](char letter, std::size_t& first, std::size_t& end) {
    if (letter == ':') return;
    first = letter == 'i'   ? i
            : letter == 'j' ? j
            : letter == 'h' ? head
            : letter == '0' ? 0
            : letter == 'c' ? nth_matrix(graph, node, head) * model.d_head() + j
                            : node.operation->column(model, i, j);
    end = first + 1;
  };
  choose(input.cells[0], cells.row0, cells.row1);
  choose(input.cells[1], cells.column0, cells.column1);
  return cells;
}

Cell Cell::inner(std::size_t k, std::size_t nth) const {
  const SourceCell p = cells(k).at(nth);
  return {graph, *graph.find(std::get<Stage>(p.source)), model, trace, p.head, p.row, p.column};
}

std::vector<Operand> Cell::operands(std::size_t k, Derivation* lines) const {
  const SourceRect all = cells(k);
  std::vector<Operand> operands;
  for (std::size_t n = 0; n < all.count(); ++n) {
    if (const auto& numbers = node.operation->inputs[k].numbers) {  // of an edit, which have no place
      operands.push_back({numbers->at(all.at(n).row, all.at(n).column), {}});
      continue;
    }
    if (!is_internal(k)) {
      operands.push_back({number_at(model, trace, all.at(n)), all.at(n)});
      continue;
    }
    Derivation of{lines ? lines->cell : explain::CellAddress{}};
    inner(k, n).derive(of);
    operands.push_back({of.result(), {}});
    if (!lines) continue;
    for (const explain::Step& step : of.steps)
      lines->steps.back().lines.insert(lines->steps.back().lines.end(), step.lines.begin(), step.lines.end());
  }
  return operands;
}

void Cell::derive(Derivation& steps) const {
  node.operation->terms(*this, steps);
  if (!node.operation->rounded) return;
  const Precision precision = node.precision.value_or(graph.precision);
  const double nearest = attention::rounded(precision, steps.result());
  if (nearest != steps.result() && !std::isnan(nearest))
    steps.note(std::string("rounded to ") + attention::name_of(precision), nearest);
}

std::string Derivation::title() const {
  std::string words = attention::info(cell.stage).one;
  for (const std::string what : {" score", " weight"})
    if (words.ends_with(what)) words.erase(words.size() - what.size());
  return words;
}

void Derivation::begin(std::string title, std::string formula) {
  steps.push_back({cell, std::move(title), std::move(formula), {}, 0});
}

void Derivation::line(LineForm form, Operand a, Operand b, double value, std::string words) {
  steps.back().lines.push_back({.form = form, .a = a, .b = b, .value = value, .words = std::move(words)});
  steps.back().result = value;
}

void Derivation::term(LineForm form, Operand a, Operand b, double value, Label label) {
  line(form, a, b, value);
  steps.back().lines.back().role = explain::StepLine::term;
  steps.back().lines.back().label = label;
}

void Derivation::sum(double value) {
  note("sum", value);
  steps.back().lines.back().role = explain::StepLine::total;
}

}  // namespace core::graph

namespace core::explain {
namespace {

const graph::Node& node_of(const graph::Graph& g, Stage stage) {
  if (const graph::Node* node = g.find(stage)) return *node;
  throw Error(std::string(attention::info(stage).name) + ": the model has no such stage");
}

graph::Cell cell_of(const Computation& of, const CellAddress& cell) {
  return {of.graph, node_of(of.graph, cell.stage), of.model, of.trace, cell.head, cell.row, cell.column};
}

/// Writes the one step of a cell that is given, or those of the operation.
void derive(const graph::Cell& c, graph::Derivation& steps) {
  if (!graph::is_given(c)) return c.derive(steps);
  const bool is_overridden = c.model.given.find(given_cell_address(c.model, c.trace.sequence, steps.cell));
  steps.begin(steps.title(), is_overridden ? "overridden" : "overridden, not computed");
  steps.note(is_overridden ? "overridden" : "given",
             graph::number_at(c.model, c.trace, {steps.cell.stage, c.head, c.i, c.j}));
}

}  // namespace

Explanation explain(const Computation& of, const CellAddress& cell) {
  Explanation explanation{cell, {}, 0};
  for (const CellAddress& address : derived_cells(of, cell)) {
    graph::Derivation derivation{address};
    derive(cell_of(of, address), derivation);
    for (Step& step : derivation.steps) explanation.steps.push_back(std::move(step));
  }
  explanation.result = explanation.steps.back().result;
  return explanation;
}

std::vector<CellAddress> derived_cells(const Computation& of, const CellAddress& cell) {
  std::vector<CellAddress> chain{cell};
  while (const auto earlier = graph::previous_cell(cell_of(of, chain.back()))) chain.push_back(*earlier);
  std::ranges::reverse(chain);
  return chain;
}

std::vector<SourceRect> operands(const Computation& of, const CellAddress& cell) {
  return graph::operands_of(cell_of(of, cell));
}

std::vector<SourceRect> results(const Computation& of, const CellAddress& cell) {
  graph::DependentFinder readers{of.graph, of.model, of.trace};
  readers.find({cell.stage, cell.head, cell.row, cell.row + 1, cell.column, cell.column + 1});
  return readers.found;
}

Folded fold(const Step& step, std::size_t max_terms) {
  std::vector<std::size_t> terms;
  for (std::size_t k = 0; k < step.lines.size(); ++k)
    if (step.lines[k].role == StepLine::term) terms.push_back(k);
  std::vector<bool> left_out(step.lines.size(), false);
  Folded folded;
  if (terms.size() > max_terms + 1) {
    const auto size = [&](std::size_t k) {
      const double value = std::abs(step.lines[k].value);
      return std::isnan(value) ? arma::datum::inf : value;
    };
    std::nth_element(
        terms.begin(), terms.begin() + static_cast<std::ptrdiff_t>(max_terms), terms.end(),
        [&](std::size_t a, std::size_t b) { return size(a) > size(b) || (size(a) == size(b) && a < b); });
    for (std::size_t k = max_terms; k < terms.size(); ++k) {
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
