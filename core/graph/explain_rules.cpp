#include "core/graph/explain_rules.hpp"

#include "core/base/error.hpp"
#include "core/graph/cell_formulas.hpp"
#include "core/graph/formulas.hpp"
#include "core/graph/reach.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/visible.hpp"

namespace core::explain {
namespace {

bool always(const Model&, const Trace&, const CellAddress&) {
  return true;
}
bool is_given(const Model& m, const Trace& t, const CellAddress& c) {
  return m.given.find(c.stage) || m.given.find(given_place(m, t.sequence, c));
}
bool of_head_off(const Model& m, const Trace&, const CellAddress& c) {
  return m.is_off(before_merge(m, c.row, c.column).head);
}
bool has_projections(const Model& m, const Trace&, const CellAddress&) {
  return m.projections.has_value();
}
bool has_output(const Model& m, const Trace&, const CellAddress&) {
  return m.projections && m.projections->output;
}
bool turns_values(const Model& m, const Trace&, const CellAddress&) {
  return m.additions.positions.rotary && m.departures.misplaced.values_turned;
}
/// Whether this column of queries or keys turns.
bool turns(const Model& m, const Trace&, const CellAddress& c) {
  const bool is_key = c.stage == Stage::rotated_keys;
  if (is_key && m.departures.misplaced.queries_turned_alone) return false;
  return pair_of(*m.additions.positions.rotary, c.column, m.d_head()).has_value();
}
bool has_slopes(const Model& m, const Trace&, const CellAddress&) {
  return m.additions.positions.alibi && !m.additions.positions.relative;
}
bool is_uniform(const Model& m, const Trace&, const CellAddress&) {
  return m.scores == attention::ScoreRule::uniform;
}
bool masks_before(const Model& m, const Trace&, const CellAddress&) {
  return m.mask.is_before_softmax();
}
bool renormalises(const Model& m, const Trace&, const CellAddress&) {
  return m.mask.method == attention::MaskMethod::renormalise;
}
bool is_zeroed_row(const Model& m, const Trace& t, const CellAddress& c) {
  return m.mask.empty_rows == attention::EmptyRows::zeros &&
         attention::sees_nothing(t.mask.row(c.row), t.heads[c.head].masked_scores.row(c.row));
}

bool swaps_scores(const Model& m, const Trace&, const CellAddress&) {
  return m.departures.scores_swapped;
}
bool drops_scaled(const Model& m, const Trace&, const CellAddress&) {
  return m.departures.dropout_place == attention::DropoutPlace::scaled_scores;
}
bool drops_scaled_masks_before(const Model& m, const Trace& t, const CellAddress& c) {
  return drops_scaled(m, t, c) && masks_before(m, t, c);
}
bool drops_masked(const Model& m, const Trace&, const CellAddress&) {
  return m.departures.dropout_place == attention::DropoutPlace::masked_scores;
}
bool drops_masked_masks_before(const Model& m, const Trace& t, const CellAddress& c) {
  return drops_masked(m, t, c) && masks_before(m, t, c);
}
bool drops_scores(const Model& m, const Trace&, const CellAddress&) {
  return m.departures.dropout_place != attention::DropoutPlace::weights;
}

namespace f = cell_formulas;
using enum Stage;
using enum Operation;

// clang-format off
const std::array table{
    Rule{embeddings, given, always, {}, Before::nothing, "Embedding", f::token_and_column},
    Rule{key_embeddings, given, always, {}, Before::nothing, "Key embedding", f::key_and_column},

    Rule{queries, given, is_given, {}, Before::nothing, "Query", f::given},
    Rule{queries, dot_product, has_projections,
         {{{embeddings, Reach::projected_row}, {Input::query_weight, Reach::projection}, {Input::query_bias, Reach::projection}}},
         Before::nothing, "Query", f::query},
    Rule{queries, copied, always, {{{embeddings, Reach::banded_cell}}}, Before::nothing, "Query", f::unprojected},
    Rule{keys, given, is_given, {}, Before::nothing, "Key", f::given},
    Rule{keys, dot_product, has_projections,
         {{{embeddings, Reach::projected_row, From::memory}, {Input::key_weight, Reach::projection}, {Input::key_bias, Reach::projection}}},
         Before::nothing, "Key", f::key},
    Rule{keys, copied, always, {{{embeddings, Reach::banded_cell, From::memory}}}, Before::nothing, "Key", f::unprojected},
    Rule{values, given, is_given, {}, Before::nothing, "Value", f::given},
    Rule{values, turned_product, turns_values,
         {{{embeddings, Reach::projected_row, From::memory}, {Input::value_weight, Reach::projection}, {Input::value_bias, Reach::projection}}},
         Before::nothing, "Value", f::value},
    Rule{values, dot_product, has_projections,
         {{{embeddings, Reach::projected_row, From::memory}, {Input::value_weight, Reach::projection}, {Input::value_bias, Reach::projection}}},
         Before::nothing, "Value", f::value},
    Rule{values, copied, always, {{{embeddings, Reach::banded_cell, From::memory}}}, Before::nothing, "Value", f::unprojected},

    Rule{normed_queries, given, is_given, {}, Before::nothing, "Normed query", f::given},
    Rule{normed_queries, normed, always, {{{queries, Reach::row, From::before}, {Input::query_norm, Reach::column_factor}}},
         Before::first_part, "Normed query", f::normed},
    Rule{normed_keys, given, is_given, {}, Before::nothing, "Normed key", f::given},
    Rule{normed_keys, normed, always, {{{keys, Reach::row, From::before}, {Input::key_norm, Reach::column_factor}}},
         Before::first_part, "Normed key", f::normed},
    Rule{rotated_queries, given, is_given, {}, Before::nothing, "Rotated query", f::given},
    Rule{rotated_queries, turned, turns, {{{queries, Reach::same_cell, From::before}, {queries, Reach::partner, From::before}}},
         Before::first_part, "Rotated query", f::turned},
    Rule{rotated_queries, copied, always, {{{queries, Reach::same_cell, From::before}}},
         Before::first_part, "Rotated query", f::not_turned},
    Rule{rotated_keys, given, is_given, {}, Before::nothing, "Rotated key", f::given},
    Rule{rotated_keys, turned, turns, {{{keys, Reach::same_cell, From::before}, {keys, Reach::partner, From::before}}},
         Before::first_part, "Rotated key", f::turned},
    Rule{rotated_keys, copied, always, {{{keys, Reach::same_cell, From::before}}},
         Before::first_part, "Rotated key", f::not_turned},

    Rule{scores, given, is_given, {}, Before::nothing, "Score", f::given},
    Rule{scores, zero, is_uniform, {}, Before::nothing, "Score", f::always<"no query prefers any key">},
    Rule{scores, dot_product, swaps_scores, {{{keys, Reach::row, From::chain_end}, {queries, Reach::key_row, From::chain_end}}},
         Before::nothing, "Score", f::key_by_query},
    Rule{scores, dot_product, always, {{{queries, Reach::row, From::chain_end}, {keys, Reach::key_row, From::chain_end}}},
         Before::nothing, "Score", f::query_by_key},
    Rule{scaled_scores, given, is_given, {}, Before::nothing, "Scaled", f::given},
    Rule{scaled_scores, scaled, always, {{{scores, Reach::same_cell, From::before}}}, Before::first_part, "Scaled", f::scale},
    Rule{capped_scores, given, is_given, {}, Before::nothing, "Capped", f::given},
    Rule{capped_scores, capped, always, {{{scores, Reach::same_cell, From::before}}},
         Before::first_part, "Capped", f::capped},
    Rule{position_bias, given, is_given, {}, Before::nothing, "Position bias", f::given},
    Rule{position_bias, sloped, has_slopes, {{{Input::slopes, Reach::head_number}}},
         Before::nothing, "Position bias", f::sloped},
    Rule{position_bias, copied, always, {{{Input::relative_bias, Reach::bucket}}},
         Before::nothing, "Position bias", f::bucket},
    Rule{biased_scores, given, is_given, {}, Before::nothing, "Biased", f::given},
    Rule{biased_scores, biased, always,
         {{{scores, Reach::same_cell, From::before}, {position_bias, Reach::same_cell}, {Input::score_bias, Reach::same_cell}}},
         Before::first_part, "Biased", f::biased},
    Rule{mask, given, always, {}, Before::nothing, "Mask", f::visibility},
    Rule{masked_scores, given, is_given, {}, Before::nothing, "Masked", f::given},
    Rule{masked_scores, masked_product, drops_scaled_masks_before,
         {{{scores, Reach::same_cell, From::chain_end}, {mask, Reach::same_cell}, {dropout_mask, Reach::same_cell}}},
         Before::first_part, "Dropped and masked", f::visibility},
    Rule{masked_scores, masked, masks_before, {{{scores, Reach::same_cell, From::chain_end}, {mask, Reach::same_cell}}},
         Before::first_part, "Masked", f::visibility},
    Rule{masked_scores, product, drops_scaled, {{{scores, Reach::same_cell, From::chain_end}, {dropout_mask, Reach::same_cell}}},
         Before::first_part, "Dropped", f::always<"score × dropout mask">},
    Rule{masked_scores, copied, always, {{{scores, Reach::same_cell, From::chain_end}}},
         Before::first_part, "Masked", f::always<"masked after the softmax">},

    Rule{unmasked_weights, given, is_given, {}, Before::nothing, "Softmax", f::given},
    Rule{unmasked_weights, softmax, drops_masked,
         {{{masked_scores, Reach::softmax_line}, {dropout_mask, Reach::softmax_line}, {Input::sink, Reach::head_number}}},
         Before::first_part, "Softmax", f::always<"of scores × dropout mask">},
    Rule{unmasked_weights, softmax, always, {{{masked_scores, Reach::softmax_line}, {}, {Input::sink, Reach::head_number}}},
         Before::first_part, "Softmax", f::over_line},
    Rule{zeroed_weights, given, is_given, {}, Before::nothing, "Zeroed", f::given},
    Rule{zeroed_weights, product, always, {{{unmasked_weights, Reach::same_cell}, {mask, Reach::same_cell}}},
         Before::first_part, "Zeroed", f::always<"weight × mask">},
    Rule{row_sums, given, is_given, {}, Before::nothing, "Row sum", f::given},
    Rule{row_sums, sum, always, {{{zeroed_weights, Reach::row}}}, Before::nothing, "Row sum", f::row_sum},
    Rule{weights, given, is_given, {}, Before::nothing, "Weight", f::given},
    Rule{weights, zero, is_zeroed_row, {{{mask, Reach::row}}}, Before::nothing, "Empty row", f::empty_row},
    Rule{weights, softmax, drops_masked_masks_before,
         {{{masked_scores, Reach::softmax_line}, {dropout_mask, Reach::softmax_line}, {Input::sink, Reach::head_number}}},
         Before::first_part, "Softmax", f::always<"of scores × dropout mask">},
    Rule{weights, softmax, masks_before, {{{masked_scores, Reach::softmax_line}, {}, {Input::sink, Reach::head_number}}},
         Before::first_part, "Softmax", f::over_line},
    Rule{weights, quotient, renormalises, {{{zeroed_weights, Reach::same_cell}, {row_sums, Reach::row_total}}},
         Before::first_part, "Renormalised", f::always<"weight ÷ row sum">},
    Rule{weights, product, always, {{{unmasked_weights, Reach::same_cell}, {mask, Reach::same_cell}}},
         Before::first_part, "Zeroed", f::always<"weight × mask">},

    Rule{dropout_mask, given, is_given, {}, Before::nothing, "Dropout factor", f::given},
    Rule{dropout_mask, given, always, {}, Before::nothing, "Dropout factor", f::survival},
    Rule{dropped_weights, given, is_given, {}, Before::nothing, "Dropped", f::given},
    Rule{dropped_weights, copied, drops_scores, {{{weights, Reach::same_cell}}},
         Before::nothing, "Dropped", f::always<"the scores were dropped, before the softmax">},
    Rule{dropped_weights, product, always, {{{weights, Reach::same_cell}, {dropout_mask, Reach::same_cell}}},
         Before::nothing, "Dropped", f::always<"weight × dropout mask">},
    Rule{contexts, given, is_given, {}, Before::nothing, "Context", f::given},
    Rule{contexts, dot_product, always, {{{dropped_weights, Reach::row}, {values, Reach::column}}},
         Before::nothing, "Context", f::context},
    Rule{concatenated, given, is_given, {}, Before::nothing, "Concatenated", f::given},
    Rule{concatenated, zero, of_head_off, {}, Before::nothing, "Concatenated", f::head_off},
    Rule{concatenated, copied, always, {{{contexts, Reach::merged_cell}}},
         Before::first_part, "Concatenated", f::merged},
    Rule{output, given, is_given, {}, Before::nothing, "Output", f::given},
    Rule{output, dot_product, has_output,
         {{{concatenated, Reach::row}, {Input::output_weight, Reach::projection}, {Input::output_bias, Reach::projection}}},
         Before::largest_term, "Projected", f::output_row},
    Rule{output, copied, always, {{{concatenated, Reach::same_cell}}}, Before::first_part, "Output", f::always<"no output projection">},
};
// clang-format on

}  // namespace

std::array<Part, 3> parts_of(const Model& model, const Rule& rule) {
  std::array<Part, 3> parts = rule.parts;
  for (auto& [source, reach, from] : parts) {
    if (from == From::memory && model.has_memory()) source = key_embeddings;
    if (from == From::before) source = stage_before(model, rule.stage);
    if (from != From::chain_end) continue;
    const attention::LastStages last = last_stages(model);
    source = source == Source(queries) ? last.queries : source == Source(keys) ? last.keys : last.scores;
  }
  return parts;
}

std::span<const Rule> rules() {
  return table;
}

const Rule& rule_for(const Model& model, const Trace& trace, const CellAddress& cell) {
  for (const Rule& rule : table)
    if (rule.stage == cell.stage && rule.applies(model, trace, cell)) return rule;
  throw Error(std::string(attention::info(cell.stage).name) + ": the model has no such stage");
}

}  // namespace core::explain
