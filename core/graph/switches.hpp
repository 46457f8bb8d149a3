#pragma once

#include "core/graph/changes.hpp"

/// What the rows of the table of mistakes are made of: how each is made, seen in the options, and mended.
namespace core::mistakes::switches {

using namespace attention;

/// A copy of the model, changed.
template <class Change>
Model changed(const Model& model, Change change) {
  Model next = model;
  change(next);
  return next;
}

inline bool never(const Model&) {
  return false;
}

// Scale.
inline Model mend_scale(const Model& m) {
  return with_scale(m, {});
}
template <ScaleRule rule>
bool scales_by(const Model& m) {
  return m.scale.rule == rule;
}
inline Model scale_by_d_head(const Model& m) {
  return with_scale(m, {ScaleRule::factor, 1 / static_cast<double>(m.d_head())});
}
inline bool scales_by_d_head(const Model& m) {
  return m.scale.rule == ScaleRule::factor && m.scale.factor == 1 / static_cast<double>(m.d_head());
}

template <bool prescaled>
Model scale_queries(const Model& m) {
  const bool counts = !prescaled || (m.scores == ScoreRule::query_key && scale_factor(m) != 1);
  return counts ? changed(m, [](Model& n) { n.departures.scores_prescaled = prescaled; }) : m;
}

// Mask.
inline bool is_unmasked(const Model& m) {
  return !m.mask.hides();
}
inline Model mask_causally(const Model& m) {
  return changed(m, [](Model& n) { n.mask.causal = true; });
}
inline Model see_all(const Model& m) {
  return changed(m, [](Model& n) { n.mask.causal = false; });
}
template <MaskAlignment align>
Model align_mask(const Model& m) {
  if (!m.mask.causal || m.n_tokens() == m.n_keys()) return m;
  return changed(m, [](Model& n) { n.mask.align = align; });
}
template <int diagonal>
Model shift_mask(const Model& m) {
  return changed(m, [](Model& n) {
    if (n.mask.causal) n.departures.mask_edge.diagonal = diagonal;
  });
}
template <MaskMethod method>
Model mask_by(const Model& m) {
  return is_unmasked(m) ? m : changed(m, [](Model& n) { n.mask.method = method; });
}
template <int power>
Model mask_by_fill(const Model& m) {
  if (is_unmasked(m)) return m;
  return changed(m, [](Model& n) {
    n.mask.method = MaskMethod::large_negative;
    n.departures.large_negative = power == 4 ? -1e4 : -1e9;
  });
}
template <int power>
bool masks_by_fill(const Model& m) {
  return m.mask.method == MaskMethod::large_negative &&
         m.departures.large_negative == (power == 4 ? -1e4 : -1e9);
}
inline Model mend_fill(const Model& m) {
  return changed(m, [](Model& n) {
    n.mask.method = MaskMethod::negative_infinity;
    n.departures.large_negative = Departures().large_negative;
  });
}

inline Model widen_window(const Model& m) {
  return changed(m, [](Model& n) {
    if (n.mask.window.left) ++*n.mask.window.left;
  });
}
inline Model narrow_window(const Model& m) {
  return changed(m, [](Model& n) {
    if (n.mask.window.left && *n.mask.window.left > 0) --*n.mask.window.left;
  });
}
inline Model leave_window_out(const Model& m) {
  return changed(m, [](Model& n) { n.mask.window = {}; });
}
inline Model leave_key_out(const Model& m) {
  return with_key_hidden(m, m.n_keys() / 2);
}
inline Model leave_documents_out(const Model& m) {
  return changed(m, [](Model& n) { n.mask.documents.clear(); });
}

// Dropout.
template <DropoutPlace place>
Model drop_at(const Model& m) {
  return m.dropout.active() ? changed(m, [](Model& n) { n.departures.dropout_place = place; }) : m;
}
template <bool rescale>
Model drop_rescaling(const Model& m) {
  return m.dropout.active() ? changed(m, [](Model& n) { n.dropout.rescale = rescale; }) : m;
}
template <bool training>
Model drop_in_training(const Model& m) {
  return m.dropout.rate > 0 ? changed(m, [](Model& n) { n.dropout.training = training; }) : m;
}

// Projections.
template <Part part>
Model transpose(const Model& m) {
  return with_weight_transposed(m, part);
}
template <Part part>
Model leave_bias_out(const Model& m) {
  return without_bias(m, part);
}
inline Model leave_biases_out(const Model& m) {
  return changed(m, [](Model& n) {
    for (const Part part : all_parts) n = without_bias(n, part);
  });
}
template <bool swapped>
Model swap_scores(const Model& m) {
  const bool counts = !swapped || (m.scores == ScoreRule::query_key && m.n_tokens() == m.n_keys());
  return counts ? changed(m, [](Model& n) { n.departures.scores_swapped = swapped; }) : m;
}

// Heads.
inline Model interleave(const Model& m) {
  if (m.n_heads == 1 || m.d_head() == 1) return m;
  return changed(m, [](Model& n) { n.departures.split = HeadColumns::interleaved; });
}
inline bool is_interleaved(const Model& m) {
  return m.departures.split == HeadColumns::interleaved || m.departures.merge == HeadColumns::interleaved;
}
inline Model mend_interleaved(const Model& m) {
  return changed(m, [](Model& n) { n.departures.split = n.departures.merge = HeadColumns::bands; });
}
template <MergeRule rule>
Model merge_by(const Model& m) {
  return m.n_heads > 1 ? changed(m, [](Model& n) { n.merge = rule; }) : m;
}

template <bool queries, bool keys, bool values>
Model view(const Model& m) {
  const bool asking = m.n_heads > 1 && m.n_tokens() > 1, asked = m.n_groups() > 1 && m.n_keys() > 1;
  if ((queries && !asking) || ((keys || values) && !asked)) return m;
  return changed(m, [](Model& n) {
    const Viewed& v = n.departures.viewed;
    n.departures.viewed = {v.queries || queries, v.keys || keys, v.values || values};
  });
}
template <bool queries, bool keys, bool values>
bool views(const Model& m) {
  return m.departures.viewed == Viewed{queries, keys, values};
}
inline Model mend_views(const Model& m) {
  return changed(m, [](Model& n) { n.departures.viewed = {}; });
}

// The softmax.
template <SoftmaxOver over>
Model normalise_over(const Model& m) {
  return changed(m, [](Model& n) { n.departures.softmax_over = over; });
}
template <BlockRule rule>
Model take_blocks(const Model& m) {
  return with_blocks(m, {rule, likely_block_size(m)});
}
template <BlockRule rule>
bool takes_blocks(const Model& m) {
  return m.departures.blocks.rule == rule;
}
inline bool rescales_in_part(const Model& m) {
  const BlockRule rule = m.departures.blocks.rule;
  return rule != BlockRule::whole && rule != BlockRule::last_dropped;
}
inline Model mend_blocks(const Model& m) {
  return with_blocks(m, {});
}

// Numbers.
template <Precision precision, bool sums = false, Precision inputs = Precision::float64>
Model compute_in(const Model& m) {
  return changed(m, [](Model& n) {
    n.departures.precision = precision;
    n.departures.sums_rounded = sums;
    n.departures.product_inputs = inputs;
  });
}
template <Precision precision, bool sums = false, Precision inputs = Precision::float64>
bool computes_in(const Model& m) {
  const Departures& d = m.departures;
  return d.precision == precision && d.sums_rounded == sums && d.product_inputs == inputs;
}
template <Precision precision>
Model weigh_in(const Model& m) {
  return changed(m, [](Model& n) { n.departures.softmax_precision = precision; });
}
template <Precision precision>
bool weighs_in(const Model& m) {
  return m.departures.softmax_precision == precision;
}

}  // namespace core::mistakes::switches
