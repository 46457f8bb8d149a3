#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph/address.hpp"

namespace core::graph {
struct Graph;
}

namespace core::explain {

/// A model, its graph and its trace of one sequence.
struct Computation {
  const graph::Graph& graph;
  const Model& model;
  const Trace& trace;
};

/// Number that enters another, and its place if it has one.
struct Operand {
  double value = 0;
  std::optional<SourceCell> place;
};

/// How the operands of a line are written; words have none.
enum class LineForm {
  words,
  single,      ///< a
  product,     ///< a · b
  factor,      ///< a × b
  division,    ///< a ÷ b
  addition,    ///< a + b
  exponential  ///< exp(a − b)
};

/// Label of a term: the key's token, the query's token, the head or column of that index, or the sink.
struct Label {
  enum LabelKind { none, token, query, head, column, sink } kind = none;
  std::size_t index = 0;
};

/// One line of a step: "0.3021 · 0.4519 = 0.1365".
struct StepLine {
  enum LineRole {
    term,   ///< a summand
    total,  ///< the sum of the terms above
    step    ///< anything else
  } role = step;
  LineForm form = LineForm::words;
  Operand a = {}, b = {};
  double value = 0;
  std::string words = {};  ///< "sum", "unmasked, so unchanged"; or empty
  Label label = {};
};

/// One operation, with its numbers.
struct Step {
  CellAddress cell;
  std::string title;    ///< "Softmax"
  std::string formula;  ///< "q_1 · k_0", with _ before a subscript
  std::vector<StepLine> lines;
  double result = 0;  ///< computed from the operands
};

/// Derivation of a cell, starting as far upstream as the operations continue one another.
struct Explanation {
  CellAddress cell;
  std::vector<Step> steps;  ///< at least one; the last yields the cell
  double result = 0;        ///< of the last step
};

/// Derives a cell from the numbers it is computed from.
///
/// Throws core::Error if the model has no such stage.
Explanation explain(const Computation& of, const CellAddress& cell);

/// Returns the cells that explain() derives, the given one last.
std::vector<CellAddress> derived_cells(const Computation& of, const CellAddress& cell);

/// Returns the direct operands of a cell. Keys at −inf, which add nothing to a softmax, are left out; the
/// weight of such a key depends on its −inf alone.
std::vector<SourceRect> operands(const Computation& of, const CellAddress& cell);

/// Returns the direct results of a cell: rectangles of stages that the model has, without given cells.
std::vector<SourceRect> results(const Computation& of, const CellAddress& cell);

/// Terms of a step that are shown when it is folded.
struct Folded {
  std::vector<std::size_t>
      lines;               ///< indices into Step::lines, in order; all that are not terms are included
  std::size_t others = 0;  ///< terms left out
  double rest = 0;         ///< their sum
};

/// Keeps the terms of largest magnitude; never leaves out a single term.
Folded fold(const Step& step, std::size_t max_terms);

}  // namespace core::explain
