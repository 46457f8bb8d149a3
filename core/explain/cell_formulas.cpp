#include "core/explain/cell_formulas.hpp"

#include <cmath>

#include "core/attention/intended.hpp"
#include "core/attention/mistaken.hpp"
#include "core/explain/reach.hpp"
#include "core/explain/sight_words.hpp"

namespace core::explain::cell_formulas {
namespace {

using attention::rules_of;
using std::to_string;
using Text = std::string;

Text column(std::size_t j) {
  return ", column " + to_string(j);
}
Text projected(const Model& m, const CellAddress& c, char symbol) {
  const auto [row, k] = before_split(m, c);
  return "x_" + to_string(row) + " · W_" + symbol + column(k);
}

}  // namespace

Text given(const Model& m, const Trace& t, const CellAddress& c) {
  return m.given.find({c.stage, t.sequence, c.head, c.row, c.column}) ? "typed over" : "given, not computed";
}

Text head_off(const Model& m, const Trace&, const CellAddress& c) {
  return "head " + to_string(before_merge(m, c.row, c.column).head) + " is off";
}

Text token_and_column(const Model&, const Trace&, const CellAddress& c) {
  return "x_" + to_string(c.row) + column(c.column);
}

Text query(const Model& m, const Trace&, const CellAddress& c) {
  return projected(m, c, 'q');
}

Text key(const Model& m, const Trace&, const CellAddress& c) {
  return projected(m, c, 'k');
}

Text value(const Model& m, const Trace&, const CellAddress& c) {
  return projected(m, c, 'v');
}

Text unprojected(const Model& m, const Trace&, const CellAddress& c) {
  const auto [row, k] = before_split(m, c);
  return "x_" + to_string(row) + column(k) + ": no projection";
}

Text query_by_key(const Model&, const Trace&, const CellAddress& c) {
  return "q_" + to_string(c.row) + " · k_" + to_string(c.column);
}

Text key_by_query(const Model&, const Trace&, const CellAddress& c) {
  return "k_" + to_string(c.row) + " · q_" + to_string(c.column) + ", in each other's place";
}

Text scale(const Model& m, const Trace&, const CellAddress&) {
  const attention::Scaling& rule = *rules_of(m).scale;
  if (!rule.width) return rule.formula(m, false);
  const bool of_model = &rule == &attention::mistaken::by_sqrt_d_model;
  return Text("÷ √d") + (of_model ? " of the model" : "") + ", d = " + to_string(rule.width(m));
}

Text visibility(const Model& m, const Trace& t, const CellAddress& c) {
  return sight_formula(m, t.sequence, c.row, c.column);
}

Text over_line(const Model& m, const Trace& t, const CellAddress& c) {
  const attention::Rules rules = rules_of(m);
  if (rules.softmax->in_blocks) return rules.softmax->formula(m, false);
  if (!rules.softmax->over_keys) return "over the queries of key " + to_string(c.column);
  if (!rules.mask->fill || std::isfinite(rules.mask->fill(m))) return "over all keys";
  const double visible = arma::accu(t.mask.row(c.row));
  if (visible == 0) return "no key is visible: 0/0";
  return visible < static_cast<double>(t.mask.n_cols()) ? "over the visible keys" : "over all keys";
}

Text empty_row(const Model&, const Trace&, const CellAddress& c) {
  return "query " + to_string(c.row) + " sees no key: zeros, as chosen";
}

Text row_sum(const Model&, const Trace&, const CellAddress& c) {
  return "Σ of row " + to_string(c.row);
}

Text survival(const Model& m, const Trace&, const CellAddress&) {
  if (m.dropout.active())
    return rules_of(m).survive == &attention::intended::rescaled ? "0 or 1/(1 − p)" : "0 or 1: not rescaled";
  return m.dropout.training ? "dropout is off" : "off in evaluation";
}

Text context(const Model& m, const Trace&, const CellAddress& c) {
  const Text head =
      m.n_heads > 1 ? "head " + to_string(c.head) + column(c.column) : "column " + to_string(c.column);
  return head + (m.dropout.active() ? ": dropped weights · values" : ": weights · values");
}

Text merged(const Model& m, const Trace&, const CellAddress&) {
  const auto* const rule = rules_of(m).merge;
  if (rule == &attention::mistaken::columns_in_turn) return "a column of each head in turn";
  if (rule != &attention::intended::side_by_side) return rule->formula(m, false);
  return m.n_heads > 1 ? "the heads side by side" : "one head";
}

Text output_row(const Model&, const Trace&, const CellAddress& c) {
  return "row " + to_string(c.row) + " · column " + to_string(c.column) + " of W_o";
}

}  // namespace core::explain::cell_formulas
