#include "core/attention/rules.hpp"

#include "core/attention/intended.hpp"
#include "core/attention/mistaken.hpp"

namespace core::attention {
namespace {

using namespace intended;

const Scoring* scoring(const Model& m) {
  if (m.scores == ScoreRule::uniform) return &uniform;
  return m.departures.scores_swapped ? &mistaken::keys_by_queries : &query_by_key;
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
  const bool moved = m.departures.mask_diagonal != 0 || m.departures.mask_transposed;
  return moved ? &mistaken::another_edge : &causal;
}

const Masking* masking(const Model& m) {
  const Masking& rule = m.mask.method == MaskMethod::negative_infinity ? minus_infinity
                        : m.mask.method == MaskMethod::large_negative  ? mistaken::large_negative
                                                                       : later;
  return m.departures.dropout_place == DropoutPlace::scaled_scores ? &mistaken::of_dropped(rule) : &rule;
}

const Normalising* normalising(const Model& m) {
  const bool by_rows = m.departures.softmax_over == SoftmaxOver::keys;
  const Normalising& rule = by_rows ? over_keys : mistaken::over_queries;
  return m.departures.dropout_place == DropoutPlace::masked_scores ? &mistaken::of_dropped(rule) : &rule;
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
  return {.project = {.query = m.projections ? &projected_query : &unprojected,
                      .key = m.projections ? &projected_key : &unprojected,
                      .value = m.projections ? &projected_value : &unprojected,
                      .output = m.projections && m.projections->output ? &projected_output : &without_output},
          .split = d.split == HeadColumns::bands ? &in_bands : &mistaken::interleaved,
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
          .mix = &weighted_values,
          .merge = merging(m),
          .precision = d.precision};
}

const Surviving* surviving(const Dropout& dropout) {
  return dropout.rescale ? &intended::rescaled : &mistaken::not_rescaled;
}

HeadSizes split_sizes(const Model& model) {
  return {model.n_heads, model.n_tokens(), model.d_out() / model.n_heads};
}

HeadSizes merged_sizes(const Model& model) {
  return {model.n_heads, model.n_tokens(), model.d_value()};
}

}  // namespace core::attention
