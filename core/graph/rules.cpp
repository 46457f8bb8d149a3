#include "core/graph/rules.hpp"

#include "core/graph/intended.hpp"
#include "core/graph/mistaken.hpp"

namespace core::attention {
namespace {

using namespace intended;

/// Whether matrix products are coarser than the numbers that they are made of.
bool multiplies_coarsely(const Departures& d) {
  return d.product_inputs != Precision::float64 || d.sums_rounded;
}

Projectors projectors(const Model& m) {
  if (!m.projections)
    return {.query = &unprojected, .key = &unprojected, .value = &unprojected, .output = &without_output};
  const bool coarse = multiplies_coarsely(m.departures), has_output = m.projections->output.has_value();
  return {.query = coarse ? &mistaken::coarse_query : &projected_query,
          .key = coarse ? &mistaken::coarse_key : &projected_key,
          .value = coarse ? &mistaken::coarse_value : &projected_value,
          .output = !has_output ? &without_output
                    : coarse    ? &mistaken::coarse_output
                                : &projected_output};
}

Splitters splitters(const Model& m) {
  const Splitting *columns = &unviewed(m), *viewed = &mistaken::viewed;
  const Viewed& v = m.departures.viewed;
  return {.query = v.queries ? viewed : columns,
          .key = v.keys ? viewed : columns,
          .value = v.values ? viewed : columns};
}

Added added(const Model& m) {
  const Additions& a = m.additions;
  const Positions& p = a.positions;
  const bool turn = p.rotary.has_value();
  return {.norm = !a.normalise                         ? nullptr
                  : a.normalise->rule == NormRule::rms ? &normed_by_rms
                                                       : &normed_by_deviation,
          .turn_queries = turn ? &turned_queries : nullptr,
          .turn_keys = !turn                                         ? nullptr
                       : m.departures.misplaced.queries_turned_alone ? &mistaken::not_turned
                                                                     : &turned_keys,
          .turn_values = turn && m.departures.misplaced.values_turned ? &mistaken::turned_values : nullptr,
          .cap = a.score_cap ? &capped : nullptr,
          .position_bias = p.relative ? &by_bucket
                           : p.alibi  ? &by_slope
                                      : nullptr,
          .add_biases = a.has_bias() ? &with_biases : nullptr};
}

const Scoring* scoring(const Model& m) {
  if (m.scores == ScoreRule::uniform) return &uniform;
  const Departures& d = m.departures;
  const Scoring* rule = d.scores_swapped ? &mistaken::keys_by_queries : &query_by_key;
  if (multiplies_coarsely(d)) rule = &mistaken::coarse(*rule);
  return d.scores_prescaled ? &mistaken::prescaled(*rule) : rule;
}

const Scaling* scaling(const Model& m) {
  switch (m.scale.rule) {
    case ScaleRule::inverse_sqrt_d_head:
      return &by_sqrt_d_head;
    case ScaleRule::inverse_sqrt_d_model:
      return &mistaken::by_sqrt_d_model;
    case ScaleRule::factor:
      return &by_factor;
    case ScaleRule::none:
      break;
  }
  return &not_scaled;
}

const Seeing* seeing(const Model& m) {
  if (!m.mask.causal) return &everything;
  const bool moved = m.departures.mask_edge.diagonal != 0 || m.departures.mask_edge.transposed;
  return moved ? &mistaken::another_edge : &causal;
}

const Masking* masking(const Model& m) {
  const Masking& rule = m.mask.method == MaskMethod::negative_infinity ? minus_infinity
                        : m.mask.method == MaskMethod::large_negative  ? mistaken::large_negative
                                                                       : later;
  return m.departures.dropout_place == DropoutPlace::scaled_scores ? &mistaken::of_dropped(rule) : &rule;
}

const Normalising* normalising(const Model& m) {
  const Departures& d = m.departures;
  const Normalising* rule = d.softmax_over == SoftmaxOver::queries ? &mistaken::over_queries
                            : d.blocks.rule == BlockRule::whole    ? &over_keys
                                                                   : &mistaken::in_blocks;
  if (d.softmax_precision != Precision::float64) rule = &mistaken::coarse(*rule);
  return d.dropout_place == DropoutPlace::masked_scores ? &mistaken::of_dropped(*rule) : rule;
}

const Weighing* weighing(const Model& m) {
  const Weighing& rule = m.mask.method == MaskMethod::renormalise          ? by_row_sum
                         : m.mask.method == MaskMethod::zero_after_softmax ? mistaken::zeroed
                                                                           : of_masked_scores;
  return m.mask.empty_rows == EmptyRows::zeros ? &with_empty_rows_zero(rule) : &rule;
}

const Merging* merging(const Model& m) {
  if (m.merge == MergeRule::reshape_without_transpose) return &mistaken::without_transpose;
  return m.departures.merge == HeadColumns::bands ? &side_by_side : &mistaken::columns_in_turn;
}

}  // namespace

Rules rules_of(const Model& m) {
  const Departures& d = m.departures;
  const bool renormalises = m.mask.method == MaskMethod::renormalise;
  const bool masks_later = renormalises || m.mask.method == MaskMethod::zero_after_softmax;
  return {.project = projectors(m),
          .split = splitters(m),
          .added = added(m),
          .score = scoring(m),
          .scale = scaling(m),
          .see = seeing(m),
          .mask = masking(m),
          .softmax = normalising(m),
          .unmasked = {.softmax = masks_later ? normalising(m) : nullptr,
                       .zero = renormalises ? &zero_where_hidden : nullptr,
                       .sum = renormalises ? &sum_of_row : nullptr},
          .weigh = weighing(m),
          .survive = surviving(m.dropout),
          .drop = d.dropout_place == DropoutPlace::weights ? &of_weights : &mistaken::dropped_before,
          .mix = multiplies_coarsely(d) ? &mistaken::coarsely_weighted_values : &weighted_values,
          .merge = merging(m),
          .precision = d.precision};
}

arma::mat prepared(const Model& model, const Rules& rules, Stage stage, const arma::mat& from) {
  if (stage == Stage::normed_queries)
    return rules.added.norm->compute(from, model.additions.normalise->query, model);
  if (stage == Stage::normed_keys)
    return rules.added.norm->compute(from, model.additions.normalise->key, model);
  const bool of_queries = stage == Stage::rotated_queries;
  return (of_queries ? rules.added.turn_queries : rules.added.turn_keys)->compute(from, model);
}

const Surviving* surviving(const Dropout& dropout) {
  return dropout.rescale ? &intended::rescaled : &mistaken::not_rescaled;
}

const Splitting& unviewed(const Model& model) {
  return model.departures.split == HeadColumns::bands ? in_bands : mistaken::interleaved;
}

const Splitting& splitting(const Model& model, Stage stage) {
  const Splitters split = splitters(model);
  return stage == Stage::keys ? *split.key : stage == Stage::values ? *split.value : *split.query;
}

HeadSizes split_sizes(const Model& model, Stage stage) {
  const std::size_t d_head = model.d_out() / model.n_heads;
  if (stage == Stage::queries) return {model.n_heads, model.n_tokens(), d_head};
  return {model.n_groups(), model.n_keys(), d_head};
}

HeadSizes merged_sizes(const Model& model) {
  return {model.n_heads, model.n_tokens(), model.d_value()};
}

}  // namespace core::attention
