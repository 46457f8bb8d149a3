#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph/address.hpp"

namespace core::explain {

/// A number that goes into another, and where it stands when it stands anywhere.
struct Operand {
  double value = 0;
  std::optional<Place> place;
};

/// How the operands of a line are written; words have none.
enum class Form {
  words,
  single,      ///< a
  product,     ///< a · b
  factor,      ///< a × b
  division,    ///< a ÷ b
  addition,    ///< a + b
  exponential  ///< exp(a − b)
};

/// What a term belongs to: the key's token, the query's, the head or column of that index, or the sink.
struct Label {
  enum Kind { none, token, query, head, column, sink } kind = none;
  std::size_t index = 0;
};

/// One line of a step: "0.3021 · 0.4519 = 0.1365".
struct Line {
  enum Role {
    term,   ///< one of those that are added up
    total,  ///< what the terms above add up to
    step    ///< anything else
  } role = step;
  Form form = Form::words;
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
  std::vector<Line> lines;
  double result = 0;  ///< worked out from the operands
};

/// A cell worked out, from as far upstream as the table of rules unfolds it.
struct Explanation {
  CellAddress cell;
  std::vector<Step> steps;  ///< at least one; the last ends in the cell
  double result = 0;        ///< of the last step
};

/// Works a cell out from the numbers it is made of; the trace must be one of the model's.
///
/// Throws core::Error when the model has no such stage.
Explanation explain(const Model& model, const Trace& trace, const CellAddress& cell);

/// The cells that explain() works out, the given one last.
std::vector<CellAddress> worked_out(const Model& model, const Trace& trace, const CellAddress& cell);

/// What a cell is made of directly; keys that are −inf and so add nothing to a softmax are left out, and of
/// such a key its −inf alone makes the weight.
std::vector<Cells> operands(const Model& model, const Trace& trace, const CellAddress& cell);

/// What a cell goes into directly: rectangles of stages that the model has, without cells that are given.
std::vector<Cells> results(const Model& model, const Trace& trace, const CellAddress& cell);

/// Which terms of a step are shown when it is folded.
struct Folded {
  std::vector<std::size_t>
      lines;               ///< indices into Step::lines, in order; all that are no terms are among them
  std::size_t others = 0;  ///< terms left out
  double rest = 0;         ///< what those add up to
};

/// Keeps the terms of largest magnitude; one term alone is never left out.
Folded fold(const Step& step, std::size_t max_terms);

}  // namespace core::explain
