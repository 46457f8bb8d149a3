#include "core/explain/cell_formulas.hpp"

#include <algorithm>

namespace core::explain::cell_formulas {
namespace {

using attention::MaskMethod;
using attention::MergeRule;
using attention::ScaleRule;
using std::to_string;
using Text = std::string;

Text column(std::size_t j) {
  return ", column " + to_string(j);
}
std::size_t banded(const Model& m, const CellAddress& c) {
  return c.head * m.d_head() + c.column;
}

Text projected(const Model& m, const CellAddress& c, char symbol) {
  return "x_" + to_string(c.row) + " · W_" + symbol + column(banded(m, c));
}

}  // namespace

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
  return "x_" + to_string(c.row) + column(banded(m, c)) + ": no projection";
}

Text query_by_key(const Model&, const Trace&, const CellAddress& c) {
  return "q_" + to_string(c.row) + " · k_" + to_string(c.column);
}

Text uniform(const Model&, const Trace&, const CellAddress&) {
  return "no query prefers any key";
}

Text scale(const Model& m, const Trace&, const CellAddress&) {
  switch (m.scale.rule) {
    case ScaleRule::inverse_sqrt_d_head:
      return "÷ √d, d = " + to_string(m.d_head());
    case ScaleRule::inverse_sqrt_d_model:
      return "÷ √d of the model, d = " + to_string(m.d_model());
    case ScaleRule::factor:
      return "× factor";
    case ScaleRule::none:
      break;
  }
  return "not scaled";
}

Text visibility(const Model& m, const Trace& t, const CellAddress& c) {
  const bool by_hand = std::any_of(
      m.mask.cells.begin(), m.mask.cells.end(),
      [&](const attention::MaskCell& cell) { return cell.row == c.row && cell.column == c.column; });
  if (by_hand) return t.mask(c.row, c.column) == 0 ? "hidden by hand" : "shown by hand";
  if (!m.mask.causal) return "no causal mask";
  return "key " + to_string(c.column) + (c.column <= c.row ? " ≤ query " : " > query ") + to_string(c.row);
}

Text masked_later(const Model&, const Trace&, const CellAddress&) {
  return "masked after the softmax";
}

Text over_keys(const Model& m, const Trace& t, const CellAddress& c) {
  if (m.mask.method != MaskMethod::negative_infinity) return "over all keys";
  const double visible = arma::accu(t.mask.row(c.row));
  if (visible == 0) return "no key is visible: 0/0";
  return visible < static_cast<double>(t.mask.n_cols()) ? "over the visible keys" : "over all keys";
}

Text empty_row(const Model&, const Trace&, const CellAddress& c) {
  return "query " + to_string(c.row) + " sees no key: zeros, as chosen";
}

Text times_mask(const Model&, const Trace&, const CellAddress&) {
  return "weight × mask";
}

Text row_sum(const Model&, const Trace&, const CellAddress& c) {
  return "Σ of row " + to_string(c.row);
}

Text by_row_sum(const Model&, const Trace&, const CellAddress&) {
  return "weight ÷ row sum";
}

Text survival(const Model& m, const Trace&, const CellAddress&) {
  return m.dropout.active() ? "0 or 1/(1 − p)" : m.dropout.training ? "dropout is off" : "off in evaluation";
}

Text times_dropout(const Model&, const Trace&, const CellAddress&) {
  return "weight × dropout mask";
}

Text context(const Model& m, const Trace&, const CellAddress& c) {
  const Text head =
      m.n_heads > 1 ? "head " + to_string(c.head) + column(c.column) : "column " + to_string(c.column);
  return head + (m.dropout.active() ? ": dropped weights · values" : ": weights · values");
}

Text merged(const Model& m, const Trace&, const CellAddress&) {
  if (m.merge == MergeRule::reshape_without_transpose) return "reshaped without the transpose";
  return m.n_heads > 1 ? "the heads side by side" : "one head";
}

Text output_row(const Model&, const Trace&, const CellAddress& c) {
  return "row " + to_string(c.row) + " · column " + to_string(c.column) + " of W_o";
}

Text not_projected(const Model&, const Trace&, const CellAddress&) {
  return "no output projection";
}

}  // namespace core::explain::cell_formulas
