#include "core/mistakes/mistakes.hpp"

#include <array>

#include "core/find.hpp"
#include "core/mistakes/changes.hpp"

namespace core::mistakes {
namespace {

using namespace attention;

/// A copy of the model, changed.
template <class Change>
Model changed(const Model& model, Change change) {
  Model next = model;
  change(next);
  return next;
}

bool never(const Model&) {
  return false;
}

// Scale.
Model mend_scale(const Model& m) {
  return with_scale(m, {});
}
template <ScaleRule rule>
bool scales_by(const Model& m) {
  return m.scale.rule == rule;
}
Model scale_by_d_head(const Model& m) {
  return with_scale(m, {ScaleRule::factor, 1 / static_cast<double>(m.d_head())});
}
bool scales_by_d_head(const Model& m) {
  return m.scale.rule == ScaleRule::factor && m.scale.factor == 1 / static_cast<double>(m.d_head());
}

// Mask.
bool is_unmasked(const Model& m) {
  return !m.mask.hides();
}
Model mask_causally(const Model& m) {
  return changed(m, [](Model& n) { n.mask.causal = true; });
}
template <int diagonal>
Model shift_mask(const Model& m) {
  return changed(m, [](Model& n) {
    if (n.mask.causal) n.departures.mask_diagonal = diagonal;
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
Model mend_fill(const Model& m) {
  return changed(m, [](Model& n) {
    n.mask.method = MaskMethod::negative_infinity;
    n.departures.large_negative = Departures().large_negative;
  });
}

Model widen_window(const Model& m) {
  return changed(m, [](Model& n) {
    if (n.mask.window.left) ++*n.mask.window.left;
  });
}
Model narrow_window(const Model& m) {
  return changed(m, [](Model& n) {
    if (n.mask.window.left && *n.mask.window.left > 0) --*n.mask.window.left;
  });
}
Model leave_window_out(const Model& m) {
  return changed(m, [](Model& n) { n.mask.window = {}; });
}
Model leave_documents_out(const Model& m) {
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
Model leave_biases_out(const Model& m) {
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
Model interleave(const Model& m) {
  if (m.n_heads == 1 || m.d_head() == 1) return m;
  return changed(m, [](Model& n) { n.departures.split = HeadColumns::interleaved; });
}
bool is_interleaved(const Model& m) {
  return m.departures.split == HeadColumns::interleaved || m.departures.merge == HeadColumns::interleaved;
}
Model mend_interleaved(const Model& m) {
  return changed(m, [](Model& n) { n.departures.split = n.departures.merge = HeadColumns::bands; });
}
template <MergeRule rule>
Model merge_by(const Model& m) {
  return m.n_heads > 1 ? changed(m, [](Model& n) { n.merge = rule; }) : m;
}

// Numbers.
template <Precision precision>
Model compute_in(const Model& m) {
  return changed(m, [](Model& n) { n.departures.precision = precision; });
}
template <Precision precision>
bool computes_in(const Model& m) {
  return m.departures.precision == precision;
}

// clang-format off
constexpr std::array table{
    Mistake{"half_precision", "half_precision", "float16 arithmetic",
            "Every stage is rounded to float16, which has 11 binary digits and ends at 65504.",
            "Compute in float32, or at least the scores, the softmax and the sums.",
            Stage::embeddings, compute_in<Precision::float16>, computes_in<Precision::float16>, compute_in<Precision::float64>},
    Mistake{"bfloat16_precision", "bfloat16_precision", "bfloat16 arithmetic",
            "Every stage is rounded to bfloat16, which has 8 binary digits.",
            "Compute in float32, or at least the scores, the softmax and the sums.",
            Stage::embeddings, compute_in<Precision::bfloat16>, computes_in<Precision::bfloat16>, compute_in<Precision::float64>},
    Mistake{"weight_untransposed:query", "weight_untransposed:query", "query weight untransposed",
            "The query weight is used as its transpose: a PyTorch Linear keeps out × in and computes x·Wᵀ.",
            "Transpose the query weight, or compute x·Wᵀ with it.",
            Stage::queries, transpose<Part::query>, never, transpose<Part::query>},
    Mistake{"weight_untransposed:key", "weight_untransposed:key", "key weight untransposed",
            "The key weight is used as its transpose: a PyTorch Linear keeps out × in and computes x·Wᵀ.",
            "Transpose the key weight, or compute x·Wᵀ with it.",
            Stage::keys, transpose<Part::key>, never, transpose<Part::key>},
    Mistake{"weight_untransposed:value", "weight_untransposed:value", "value weight untransposed",
            "The value weight is used as its transpose: a PyTorch Linear keeps out × in and computes x·Wᵀ.",
            "Transpose the value weight, or compute x·Wᵀ with it.",
            Stage::values, transpose<Part::value>, never, transpose<Part::value>},
    Mistake{"weight_untransposed:output", "weight_untransposed:output", "output weight untransposed",
            "The output weight is used as its transpose: a PyTorch Linear keeps out × in and computes x·Wᵀ.",
            "Transpose the output weight, or compute x·Wᵀ with it.",
            Stage::output, transpose<Part::output>, never, transpose<Part::output>},
    Mistake{"bias_missing", "bias_missing", "all biases missing",
            "No bias is added after the projections.", "Add the biases of all projections.",
            Stage::queries, leave_biases_out, never, nullptr},
    Mistake{"bias_missing:query", "bias_missing", "query bias missing",
            "The bias of the query projection is not added.", "Add the bias of the query projection.",
            Stage::queries, leave_bias_out<Part::query>, never, nullptr},
    Mistake{"bias_missing:key", "bias_missing", "key bias missing",
            "The bias of the key projection is not added.", "Add the bias of the key projection.",
            Stage::keys, leave_bias_out<Part::key>, never, nullptr},
    Mistake{"bias_missing:value", "bias_missing", "value bias missing",
            "The bias of the value projection is not added.", "Add the bias of the value projection.",
            Stage::values, leave_bias_out<Part::value>, never, nullptr},
    Mistake{"bias_missing:output", "bias_missing", "output bias missing",
            "The bias of the output projection is not added.", "Add the bias of the output projection.",
            Stage::output, leave_bias_out<Part::output>, never, nullptr},
    Mistake{"heads_interleaved", "heads_interleaved", "heads interleaved",
            "Head h takes columns h, h + n_heads, … instead of a band of neighbours: reshaped to (d_head, n_heads).",
            "Reshape the columns to (n_heads, d_head), in that order.",
            Stage::queries, interleave, is_interleaved, mend_interleaved},
    Mistake{"query_key_swapped", "query_key_swapped", "queries and keys swapped",
            "Queries and keys stand in each other's place, so the scores are transposed.",
            "Multiply the queries by the transposed keys: Q·Kᵀ.",
            Stage::queries, swap_scores<true>, [](const Model& m) { return m.departures.scores_swapped; }, swap_scores<false>},
    Mistake{"no_scale", "no_scale", "no scale",
            "The scores are not divided by √d_head.", "Divide the scores by √d_head before mask and softmax.",
            Stage::scaled_scores, [](const Model& m) { return with_scale(m, {ScaleRule::none, 1}); },
            scales_by<ScaleRule::none>, mend_scale},
    Mistake{"scale_sqrt_d_model", "scale_sqrt_d_model", "scaled by √d_model",
            "The scores are divided by √d_model, the width of all heads together.",
            "Divide by √d_head, the width of one head.",
            Stage::scaled_scores, [](const Model& m) { return with_scale(m, {ScaleRule::inverse_sqrt_d_model, 1}); },
            scales_by<ScaleRule::inverse_sqrt_d_model>, mend_scale},
    Mistake{"scale_d_head", "scale_d_head", "scaled by d_head",
            "The scores are divided by d_head itself.", "Take the square root: divide by √d_head.",
            Stage::scaled_scores, scale_by_d_head, scales_by_d_head, mend_scale},
    Mistake{"no_mask", "no_mask", "no mask",
            "Every query sees every key, also those that come after it.", "Mask the scores before the softmax.",
            Stage::mask, without_mask, is_unmasked, mask_causally},
    Mistake{"mask_transposed", "mask_transposed", "mask transposed",
            "The mask is transposed: queries see what comes after them and not what came before.",
            "Hide the cells above the diagonal: triu(diagonal=1), or keep tril().",
            Stage::mask, with_mask_transposed, [](const Model& m) { return m.departures.mask_transposed; },
            with_mask_transposed},
    Mistake{"mask_hides_diagonal", "mask_hides_diagonal", "mask hides the diagonal",
            "No query sees its own key: the mask begins one cell early.",
            "Begin the hidden part one cell further: triu(diagonal=1), not triu().",
            Stage::mask, shift_mask<-1>, [](const Model& m) { return m.departures.mask_diagonal < 0; }, shift_mask<0>},
    Mistake{"mask_shows_next", "mask_shows_next", "mask shows the next token",
            "Each query sees one key too many, the next one: the mask begins one cell late.",
            "Begin the hidden part one cell earlier: triu(diagonal=1), not triu(diagonal=2).",
            Stage::mask, shift_mask<1>, [](const Model& m) { return m.departures.mask_diagonal > 0; }, shift_mask<0>},
    Mistake{"window_missing", "window_missing", "window missing",
            "The window is left out: queries see keys however far away they are.",
            "Hide the keys further than the window from each query.",
            Stage::mask, leave_window_out, never, nullptr},
    Mistake{"window_off_by_one", "window_off_by_one", "window one key too wide",
            "The window shows one key too many at its left: it counts the query itself out.",
            "Show the keys from position − left on, the query's own besides.",
            Stage::mask, widen_window, never, nullptr},
    Mistake{"window_off_by_one:fewer", "window_off_by_one", "window one key too narrow",
            "The window shows one key too few at its left: it counts the query itself in.",
            "Show the keys from position − left on, the query's own besides.",
            Stage::mask, narrow_window, never, nullptr},
    Mistake{"documents_missing", "documents_missing", "documents run together",
            "The documents are not kept apart: queries see keys of the documents before theirs.",
            "Hide the keys of other documents from each query.",
            Stage::mask, leave_documents_out, never, nullptr},
    Mistake{"mask_after_softmax", "mask_after_softmax", "mask after the softmax",
            "Hidden weights become 0 only after the softmax, so that rows sum to less than 1.",
            "Mask the scores with −∞ before the softmax, or divide each row by its sum.",
            Stage::masked_scores, mask_by<MaskMethod::zero_after_softmax>,
            [](const Model& m) { return m.mask.method == MaskMethod::zero_after_softmax; }, mask_by<MaskMethod::negative_infinity>},
    Mistake{"mask_finite", "mask_finite", "mask by −10⁹",
            "Hidden scores become −10⁹, a finite number, instead of −∞.", "Write −∞: float('-inf').",
            Stage::masked_scores, mask_by_fill<9>, masks_by_fill<9>, mend_fill},
    Mistake{"mask_finite:1e4", "mask_finite", "mask by −10⁴",
            "Hidden scores become −10⁴, a finite number, instead of −∞.", "Write −∞: float('-inf').",
            Stage::masked_scores, mask_by_fill<4>, masks_by_fill<4>, mend_fill},
    Mistake{"softmax_over_queries", "softmax_over_queries", "softmax over queries",
            "The softmax runs over the other axis: columns sum to 1, rows do not.",
            "Run the softmax over the keys: dim=-1.",
            Stage::unmasked_weights,
            [](const Model& m) { return changed(m, [](Model& n) { n.departures.softmax_over = SoftmaxOver::queries; }); },
            [](const Model& m) { return m.departures.softmax_over == SoftmaxOver::queries; },
            [](const Model& m) { return changed(m, [](Model& n) { n.departures.softmax_over = SoftmaxOver::keys; }); }},
    Mistake{"dropout_before_softmax", "dropout_before_softmax", "dropout before the softmax",
            "Dropout falls on the scores: a dropped score is 0, which is not a missing key.",
            "Drop the weights, after the softmax.",
            Stage::masked_scores, drop_at<DropoutPlace::scaled_scores>,
            [](const Model& m) { return m.departures.dropout_place != DropoutPlace::weights; },
            [](const Model& m) { return changed(m, [](Model& n) { n.departures.dropout_place = DropoutPlace::weights; }); }},
    Mistake{"dropout_unscaled", "dropout_unscaled", "dropout not rescaled",
            "The weights that survive dropout are not multiplied by 1/(1 − p).",
            "Multiply the surviving weights by 1/(1 − p).",
            Stage::masked_scores, drop_rescaling<false>, [](const Model& m) { return !m.dropout.rescale; },
            [](const Model& m) { return changed(m, [](Model& n) { n.dropout.rescale = true; }); }},
    Mistake{"dropout_off", "dropout_off", "dropout off",
            "Nothing is dropped, as in evaluation.", "Switch dropout on: model.train().",
            Stage::masked_scores, drop_in_training<false>,
            [](const Model& m) { return m.dropout.rate > 0 && !m.dropout.training; }, drop_in_training<true>},
    Mistake{"merge_without_transpose", "merge_without_transpose", "merge without transpose",
            "The heads are reshaped into one matrix without the transpose, which mixes tokens and heads.",
            "Transpose heads and tokens first: contexts.transpose(1, 2).reshape(…).",
            Stage::concatenated, merge_by<MergeRule::reshape_without_transpose>,
            [](const Model& m) { return m.merge == MergeRule::reshape_without_transpose; }, merge_by<MergeRule::concatenate>},
    Mistake{"output_projection_missing", "output_projection_missing", "output projection missing",
            "The result is the concatenated heads, without the output projection.",
            "Multiply the concatenated heads by the output projection.",
            Stage::output, without_output_projection, never, nullptr},
};
// clang-format on

}  // namespace

std::span<const Mistake> mistakes() {
  return table;
}

const Mistake* find_mistake(std::string_view name) {
  return find_by(table, name, &Mistake::name);
}

bool applies(const Mistake& mistake, const Model& model) {
  return !(mistake.made(model) == model);
}

}  // namespace core::mistakes
