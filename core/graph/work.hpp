#pragma once

#include <string>
#include <utility>

#include "core/graph/explain.hpp"
#include "core/graph/explain_rules.hpp"
#include "core/graph/reach.hpp"

/// What steps are written from, and the lines of which they are made.
namespace core::explain {

/// Everything that a step is written from.
struct Work {
  const Model& model;
  const Trace& trace;
  const CellAddress& cell;
  const Rule& rule;

  std::optional<Cells> cells(std::size_t part) const {
    return reached(model, trace, parts_of(model, rule)[part], cell);
  }
  Operand operand(const Cells& cells, std::size_t k) const {
    const Place place = cells.at(k);
    return {number_at(model, trace, place), place};
  }
  Operand first() const { return operand(*cells(0), 0); }
  Operand second() const { return operand(*cells(1), 0); }
};

inline Line note(std::string words, double value) {
  return {.value = value, .words = std::move(words)};
}

inline Line line(Form form, Operand a, Operand b, double value, std::string words = {}) {
  return {.form = form, .a = a, .b = b, .value = value, .words = std::move(words)};
}

inline void add_line(Step& step, Line line) {
  step.result = line.value;
  step.lines.push_back(std::move(line));
}

inline void add_total(Step& step, double value) {
  Line total = note("sum", value);
  total.role = Line::total;
  add_line(step, std::move(total));
}

inline void add_term(Step& step, Line line, Label label) {
  line.role = Line::term;
  line.label = label;
  step.lines.push_back(std::move(line));
}

}  // namespace core::explain
