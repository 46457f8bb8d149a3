#include "core/graph/cell_formulas.hpp"

#include <cmath>

#include "core/graph/graph.hpp"
#include "core/graph/reach.hpp"
#include "core/graph/sight_words.hpp"
#include "core/graph/stages.hpp"

namespace core::explain::cell_formulas {
namespace {

using std::to_string;
using Text = std::string;

Text long_formula(const Model& m, Stage stage) {
  return computed_formula(attention::info(stage), m, false);
}
Text column(std::size_t j) {
  return ", column " + to_string(j);
}
Text projected(const Model& m, const CellAddress& c, char symbol) {
  const auto [row, k] = before_split(m, c);
  const char* from = symbol != 'q' && m.has_memory() ? "m_" : "x_";
  return from + to_string(row) + " · W_" + symbol + column(k);
}
Text positions_of(const Model& m, const CellAddress& c) {
  return "query at " + to_string(position_of_query(m, c.row)) + ", key at " +
         to_string(position_of_key(m, c.column));
}

}  // namespace

Text given(const Model& m, const Trace& t, const CellAddress& c) {
  return m.given.find(given_place(m, t.sequence, c)) ? "typed over" : "given, not computed";
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
  return projected(m, c, 'v') +
         (m.additions.positions.rotary && m.departures.misplaced.values_turned ? ", turned: a mistake" : "");
}

Text key_and_column(const Model&, const Trace&, const CellAddress& c) {
  return "m_" + to_string(c.row) + column(c.column);
}

Text normed(const Model& m, const Trace&, const CellAddress&) {
  const bool by_rms = m.additions.normalise->rule == attention::NormRule::rms;
  return by_rms ? "x ÷ √(mean of x² + ε) · w" : "(x − mean) ÷ deviation · w";
}

Text turned(const Model& m, const Trace&, const CellAddress& c) {
  const positions::Rotary& rotary = *m.additions.positions.rotary;
  const std::size_t pair = *pair_of(rotary, c.column, m.d_head());
  const auto [first, second] = columns_of(rotary, pair, m.d_head());
  const bool of_queries = c.stage == Stage::rotated_queries;
  const auto position = (of_queries ? position_of_query(m, c.row) + m.departures.misplaced.query_offset
                                    : position_of_key(m, c.row));
  return "columns " + to_string(first) + ", " + to_string(second) + " at position " + to_string(position);
}

Text not_turned(const Model& m, const Trace&, const CellAddress& c) {
  if (pair_of(*m.additions.positions.rotary, c.column, m.d_head())) return "keys are not turned: a mistake";
  return "column " + to_string(c.column) + " does not turn";
}

Text capped(const Model& m, const Trace&, const CellAddress&) {
  return long_formula(m, Stage::capped_scores);
}

Text sloped(const Model& m, const Trace&, const CellAddress& c) {
  return positions_of(m, c);
}

Text bucket(const Model& m, const Trace&, const CellAddress& c) {
  return "bucket " + to_string(bucket_of_cell(m, c.row, c.column)) + ": " + positions_of(m, c);
}

Text biased(const Model& m, const Trace&, const CellAddress&) {
  return "score " + long_formula(m, Stage::biased_scores);
}

Text unprojected(const Model& m, const Trace&, const CellAddress& c) {
  const auto [row, k] = before_split(m, c);
  const char* from = c.stage != Stage::queries && m.has_memory() ? "m_" : "x_";
  return from + to_string(row) + column(k) + ": no projection";
}

Text query_by_key(const Model&, const Trace&, const CellAddress& c) {
  return "q_" + to_string(c.row) + " · k_" + to_string(c.column);
}

Text key_by_query(const Model&, const Trace&, const CellAddress& c) {
  return "k_" + to_string(c.row) + " · q_" + to_string(c.column) + ", in each other's place";
}

Text scale(const Model& m, const Trace&, const CellAddress&) {
  const bool of_head = m.scale.rule == attention::ScaleRule::inverse_sqrt_d_head,
             of_model = m.scale.rule == attention::ScaleRule::inverse_sqrt_d_model;
  if (!of_head && !of_model) return long_formula(m, Stage::scaled_scores);
  return Text("÷ √d") + (of_model ? " of the model" : "") +
         ", d = " + to_string(of_head ? m.d_head() : m.d_model());
}

Text visibility(const Model& m, const Trace& t, const CellAddress& c) {
  return sight_formula(m, t.sequence, c.row, c.column);
}

Text over_line(const Model& m, const Trace& t, const CellAddress& c) {
  if (m.departures.softmax_over == attention::SoftmaxOver::queries)
    return "over the queries of key " + to_string(c.column);
  if (m.departures.blocks.rule != attention::BlockRule::whole) return long_formula(m, c.stage);
  if (m.mask.method != attention::MaskMethod::negative_infinity)
    return Text("over all keys") + (m.additions.sink ? " and the sink" : "");
  const double visible = arma::accu(t.mask.row(c.row));
  const bool sinks = m.additions.sink.has_value();
  if (visible == 0) return sinks ? "no key is visible: all goes to the sink" : "no key is visible: 0/0";
  const bool all = visible >= static_cast<double>(t.mask.n_cols());
  return Text(all ? "over all keys" : "over the visible keys") + (sinks ? " and the sink" : "");
}

Text empty_row(const Model&, const Trace& t, const CellAddress& c) {
  const bool sees_keys = arma::any(t.mask.row(c.row));
  return "query " + to_string(c.row) + (sees_keys ? " sees no score above −∞" : " sees no key") +
         ": zeros, as chosen";
}

Text row_sum(const Model&, const Trace&, const CellAddress& c) {
  return "Σ of row " + to_string(c.row);
}

Text survival(const Model& m, const Trace&, const CellAddress&) {
  if (m.dropout.active()) return m.dropout.rescale ? "0 or 1/(1 − p)" : "0 or 1: not rescaled";
  return m.dropout.training ? "dropout is off" : "off in evaluation";
}

Text context(const Model& m, const Trace&, const CellAddress& c) {
  const Text head =
      m.n_heads > 1 ? "head " + to_string(c.head) + column(c.column) : "column " + to_string(c.column);
  return head + (m.dropout.active() ? ": dropped weights · values" : ": weights · values");
}

Text merged(const Model& m, const Trace&, const CellAddress&) {
  const graph::Layout* layout = &graph::combine_layout(m);
  if (layout == &graph::interleaved) return "a column of each head in turn";
  if (layout != &graph::bands) return long_formula(m, Stage::concatenated);
  return m.n_heads > 1 ? "the heads side by side" : "one head";
}

Text output_row(const Model&, const Trace&, const CellAddress& c) {
  return "row " + to_string(c.row) + " · column " + to_string(c.column) + " of W_o";
}

}  // namespace core::explain::cell_formulas
