#include "core/mistakes/mistakes.hpp"

#include <array>

#include "core/attention/visible.hpp"
#include "core/find.hpp"
#include "core/mistakes/additions.hpp"

namespace core::mistakes {
namespace {

using namespace attention;
using namespace switches;

// clang-format off
constexpr std::array table{
    Mistake{"float32_precision", "float32_precision", "float32 arithmetic",
            "Every stage is rounded to float32, which has 24 binary digits.",
            "Compare as float32 does, with a tolerance, or compute in float64: .double().",
            Stage::embeddings, compute_in<Precision::float32>, computes_in<Precision::float32>, compute_in<Precision::float64>},
    Mistake{"tf32_precision", "tf32_precision", "TF32 products",
            "Both factors of every matrix product are rounded to 11 binary digits (TF32), as graphics cards may do; sums are float32.",
            "Ask for exact products: torch.set_float32_matmul_precision('highest').",
            Stage::embeddings, compute_in<Precision::float32, false, Precision::tf32>, computes_in<Precision::float32, false, Precision::tf32>, compute_in<Precision::float64>},
    Mistake{"half_precision", "half_precision", "float16 arithmetic",
            "Every stage is rounded to float16, which has 11 binary digits and ends at 65504; sums on the way are finer.",
            "Compute in float32, or at least the scores and the softmax.",
            Stage::embeddings, compute_in<Precision::float16>, computes_in<Precision::float16>, compute_in<Precision::float64>},
    Mistake{"half_precision_sums", "half_precision_sums", "float16 sums",
            "Products and sums are rounded to float16 term by term, and so is every stage.",
            "Add up in float32, as matrix products of float16 can, or compute all in float32.",
            Stage::embeddings, compute_in<Precision::float16, true>, computes_in<Precision::float16, true>, compute_in<Precision::float64>},
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
    Mistake{"view_without_transpose", "view_without_transpose", "heads viewed without transpose",
            "Queries, keys and values are viewed as (n_heads, n_tokens, d_head) without the transpose, which mixes tokens and heads.",
            "View as (n_tokens, n_heads, d_head), then exchange tokens and heads: transpose(1, 2).",
            Stage::queries, view<true, true, true>, views<true, true, true>, mend_views},
    Mistake{"view_without_transpose:query", "view_without_transpose", "queries viewed without transpose",
            "The queries are viewed as (n_heads, n_tokens, d_head) without the transpose, which mixes tokens and heads.",
            "View the queries as (n_tokens, n_heads, d_head), then exchange tokens and heads: transpose(1, 2).",
            Stage::queries, view<true, false, false>, views<true, false, false>, mend_views},
    Mistake{"view_without_transpose:key", "view_without_transpose", "keys viewed without transpose",
            "The keys are viewed as (n_heads, n_tokens, d_head) without the transpose, which mixes tokens and heads.",
            "View the keys as (n_tokens, n_heads, d_head), then exchange tokens and heads: transpose(1, 2).",
            Stage::keys, view<false, true, false>, views<false, true, false>, mend_views},
    Mistake{"view_without_transpose:value", "view_without_transpose", "values viewed without transpose",
            "The values are viewed as (n_heads, n_tokens, d_head) without the transpose, which mixes tokens and heads.",
            "View the values as (n_tokens, n_heads, d_head), then exchange tokens and heads: transpose(1, 2).",
            Stage::values, view<false, false, true>, views<false, false, true>, mend_views},
    Mistake{"n_heads_other", "n_heads_other", "another number of heads",
            "The columns are split into another number of heads.",
            "Split into as many heads as the model has.",
            Stage::queries, split_otherwise, never, nullptr},
    Mistake{"groups_tiled", "groups_tiled", "groups of heads tiled",
            "Keys and values are repeated as a whole, so that head h asks group h mod n_kv_heads.",
            "Repeat each head of keys and values in place, repeat_interleave(n_heads // n_kv_heads, dim=1), not repeat().",
            Stage::keys, tile_groups, misplaces<&Misplaced::groups_tiled>, put_right<&Misplaced::groups_tiled>},
    Mistake{"rotary_on_values", "rotary_on_values", "values turned",
            "Values are turned by their positions, as keys are.", "Turn queries and keys alone.",
            Stage::values, turn_values, misplaces<&Misplaced::values_turned>, put_right<&Misplaced::values_turned>},
    Mistake{"norm_missing", "norm_missing", "norm of queries and keys missing",
            "Queries and keys are not normalised.", "Normalise each head's queries and keys: q_norm, k_norm.",
            Stage::normed_queries, leave_norm_out, never, nullptr},
    Mistake{"norm_after_rotation", "norm_after_rotation", "norm after the rotation",
            "Queries and keys are normalised after they were turned.", "Normalise queries and keys first, then turn them.",
            Stage::normed_queries, norm_after_rotation, misplaces<&Misplaced::norm_after_rotation>, put_right<&Misplaced::norm_after_rotation>},
    Mistake{"rotary_missing", "rotary_missing", "rotary positions missing",
            "Neither queries nor keys are turned by their positions.", "Turn queries and keys by their positions before the scores.",
            Stage::rotated_queries, leave_rotary_out, never, nullptr},
    Mistake{"rotary_other_pairs", "rotary_other_pairs", "other pairs turned",
            "Columns turn in the pairs of another layout: p with p + d/2 where 2p with 2p + 1 belongs, or the other way round.",
            "Turn the pairs that the weights are laid out for: halves in Hugging Face's Llama, neighbours in Meta's.",
            Stage::rotated_queries, pair_otherwise, never, pair_otherwise},
    Mistake{"rotary_off_by_one", "rotary_off_by_one", "queries turned one position late",
            "The positions that queries, or keys, turn by are one off.",
            "Count the positions of queries and keys from the same 0.",
            Stage::rotated_queries, shift_queries<1>, shifts_queries<1>, shift_queries<0>},
    Mistake{"rotary_off_by_one:earlier", "rotary_off_by_one", "queries turned one position early",
            "The positions that queries, or keys, turn by are one off.",
            "Count the positions of queries and keys from the same 0.",
            Stage::rotated_queries, shift_queries<-1>, shifts_queries<-1>, shift_queries<0>},
    Mistake{"rotary_base", "rotary_base", "rotary base 10000",
            "The angles are those of another base than the model's, as of 10000, which most models have.",
            "Take the base of the model: rope_theta in its configuration.",
            Stage::rotated_queries, take_usual_base, never, nullptr},
    Mistake{"rotary_scaling_missing", "rotary_scaling_missing", "rotary scaling missing",
            "The frequencies are not stretched for long texts as those of the model are.",
            "Scale the frequencies as rope_scaling in the configuration says.",
            Stage::rotated_queries, leave_scaling_out, never, nullptr},
    Mistake{"rotary_backwards", "rotary_backwards", "turned backwards",
            "Queries and keys turn by the negative angle: the signs of the sines are exchanged.",
            "Turn by the positive angle: first·cos − second·sin, second·cos + first·sin.",
            Stage::rotated_queries, turn_backwards, misplaces<&Misplaced::turned_backwards>, put_right<&Misplaced::turned_backwards>},
    Mistake{"rotary_queries_only", "rotary_queries_only", "queries turned alone",
            "Queries are turned by their positions, and keys are not.", "Turn the keys as well, each by its own position.",
            Stage::rotated_keys, turn_queries_alone, misplaces<&Misplaced::queries_turned_alone>, put_right<&Misplaced::queries_turned_alone>},
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
    Mistake{"scale_twice", "scale_twice", "scaled twice",
            "The scale falls on the queries and again on the scores.",
            "Scale once: scaled_dot_product_attention() does it itself.",
            Stage::scores, scale_queries<true>, [](const Model& m) { return m.departures.scores_prescaled; }, scale_queries<false>},
    Mistake{"cap_before_scale", "cap_before_scale", "cap before the scale",
            "The scores are capped first and scaled then.", "Scale the scores first, then cap them: c·tanh(s/c).",
            Stage::scaled_scores, cap_before_scale, misplaces<&Misplaced::cap_before_scale>, put_right<&Misplaced::cap_before_scale>},
    Mistake{"bias_before_scale", "bias_before_scale", "bias before the scale",
            "Biases are added to the scores before these are scaled, so that they are scaled as well.",
            "Add biases to the scaled scores.",
            Stage::scaled_scores, bias_before_scale, misplaces<&Misplaced::bias_before_scale>, put_right<&Misplaced::bias_before_scale>},
    Mistake{"cap_missing", "cap_missing", "cap missing",
            "The scores are not capped.", "Cap the scaled scores before the mask: c·tanh(s/c).",
            Stage::capped_scores, leave_cap_out, never, nullptr},
    Mistake{"bias_missing:positions", "bias_missing", "position bias missing",
            "The bias of distances is not added to the scores.", "Add the position bias to the scaled scores.",
            Stage::position_bias, leave_position_bias_out, never, nullptr},
    Mistake{"alibi_slopes_reversed", "alibi_slopes_reversed", "slopes reversed",
            "The heads have each other's slopes: the first has that of the last.",
            "Give head 0 the first slope: 2^(−8/n_heads) where n_heads is a power of two.",
            Stage::position_bias, reverse_slopes, never, nullptr},
    Mistake{"bias_missing:scores", "bias_missing", "given bias missing",
            "The given bias is not added to the scores.", "Add the given bias to the scaled scores.",
            Stage::biased_scores, leave_score_bias_out, never, nullptr},
    Mistake{"no_mask", "no_mask", "no mask",
            "Every query sees every key, also those that come after it.", "Mask the scores before the softmax.",
            Stage::mask, without_mask, is_unmasked, mask_causally},
    Mistake{"causal_unwanted", "causal_unwanted", "causal mask unwanted",
            "A causal mask hides later keys, though every query may see them.",
            "Leave the causal mask out: is_causal=False.",
            Stage::mask, mask_causally, never, see_all},
    Mistake{"padding_missing", "padding_missing", "padding mask missing",
            "Keys that are hidden from every query, as padding is, are seen.",
            "Hide padded keys from all queries before the softmax: masked_fill(is_padding, float('-inf')).",
            Stage::mask, with_padding_seen, never, nullptr},
    Mistake{"key_missing", "key_missing", "a key missing",
            "One key is left out for every query, as by a loop or a cache that passes over it.",
            "Let every query that may see the key see it.",
            Stage::mask, leave_key_out, never, nullptr},
    Mistake{"mask_aligned_first", "mask_aligned_first", "mask from the first key on",
            "The causal mask puts the queries in the place of the first keys, though they are the last: tril() of a matrix that is not square, or is_causal=True.",
            "Shift the diagonal by n_keys − n_queries.",
            Stage::mask, align_mask<MaskAlignment::first>, [](const Model& m) { return m.mask.align == MaskAlignment::first; }, align_mask<MaskAlignment::last>},
    Mistake{"mask_aligned_last", "mask_aligned_last", "mask up to the last key",
            "The causal mask puts the queries in the place of the last keys, though they are the first.",
            "Begin the mask with the first key: tril(), or is_causal=True.",
            Stage::mask, align_mask<MaskAlignment::last>, never, align_mask<MaskAlignment::first>},
    Mistake{"mask_transposed", "mask_transposed", "mask transposed",
            "The mask is transposed: queries see what comes after them and not what came before.",
            "Hide the cells above the diagonal: triu(diagonal=1), or keep tril().",
            Stage::mask, with_mask_transposed, [](const Model& m) { return m.departures.mask_edge.transposed; },
            with_mask_transposed},
    Mistake{"mask_hides_diagonal", "mask_hides_diagonal", "mask hides the diagonal",
            "No query sees its own key: the mask begins one cell early.",
            "Begin the hidden part one cell further: triu(diagonal=1), not triu().",
            Stage::mask, shift_mask<-1>, [](const Model& m) { return m.departures.mask_edge.diagonal < 0; }, shift_mask<0>},
    Mistake{"mask_shows_next", "mask_shows_next", "mask shows the next token",
            "Each query sees one key too many, the next one: the mask begins one cell late.",
            "Begin the hidden part one cell earlier: triu(diagonal=1), not triu(diagonal=2).",
            Stage::mask, shift_mask<1>, [](const Model& m) { return m.departures.mask_edge.diagonal > 0; }, shift_mask<0>},
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
            normalise_over<SoftmaxOver::queries>,
            [](const Model& m) { return m.departures.softmax_over == SoftmaxOver::queries; },
            normalise_over<SoftmaxOver::keys>},
    Mistake{"sink_missing", "sink_missing", "sink missing",
            "No exp(sink) joins the sum of each row, so that its weights sum to 1.",
            "Append the sink to the scores of each row, run the softmax, and drop its column.",
            Stage::unmasked_weights, leave_sink_out, never, nullptr},
    Mistake{"blocks_not_rescaled", "blocks_not_rescaled", "softmax blocks not rescaled",
            "A softmax that takes the keys block by block does not multiply what it has by exp(m_old − m_new) when the maximum grows.",
            "Multiply the running sum and the running contexts by exp(m_old − m_new) in every block.",
            Stage::unmasked_weights, take_blocks<BlockRule::not_rescaled>, rescales_in_part, mend_blocks},
    Mistake{"last_block_dropped", "last_block_dropped", "last block of keys dropped",
            "The keys are taken block by block, and the last block is not visited.",
            "Round the number of blocks up: (n_keys + size - 1) // size.",
            Stage::unmasked_weights, take_blocks<BlockRule::last_dropped>, takes_blocks<BlockRule::last_dropped>, mend_blocks},
    Mistake{"softmax_half_precision", "softmax_half_precision", "float16 softmax",
            "The softmax alone is computed in float16: the scores that it takes and the weights that it gives are rounded.",
            "Compute the softmax in float32: softmax(scores, dim=-1, dtype=torch.float32).",
            Stage::unmasked_weights, weigh_in<Precision::float16>, weighs_in<Precision::float16>, weigh_in<Precision::float64>},
    Mistake{"softmax_bfloat16_precision", "softmax_bfloat16_precision", "bfloat16 softmax",
            "The softmax alone is computed in bfloat16: the scores that it takes and the weights that it gives are rounded.",
            "Compute the softmax in float32: softmax(scores, dim=-1, dtype=torch.float32).",
            Stage::unmasked_weights, weigh_in<Precision::bfloat16>, weighs_in<Precision::bfloat16>, weigh_in<Precision::float64>},
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

std::string remedy_in(const Mistake& mistake, const Model& model) {
  const std::string name = mistake.name;
  if (name == "groups_tiled")
    return "Repeat each head of keys and values in place, repeat_interleave(" +
           std::to_string(model.n_heads / model.n_groups()) + ", dim=1), not repeat().";
  if (model.n_tokens() == model.n_keys()) return mistake.remedy;
  const std::int64_t diagonal = attention::place_of_query(model, 0);
  const auto tril = [](std::int64_t shift) { return "tril(diagonal=" + std::to_string(shift) + ")"; };
  if (name == "mask_transposed") return "Keep " + tril(diagonal) + " of queries × keys.";
  if (name == "mask_hides_diagonal" || name == "mask_shows_next")
    return "Keep " + tril(diagonal) + " of queries × keys, not " +
           tril(diagonal + (name == "mask_shows_next" ? 1 : -1)) + ".";
  const std::int64_t more =
      static_cast<std::int64_t>(model.n_keys()) - static_cast<std::int64_t>(model.n_tokens());
  if (name == "mask_aligned_first")
    return "Shift the diagonal by n_keys − n_queries: keep " + tril(more) + ".";
  if (name.starts_with("rotary_off_by_one"))
    return "Where key j turns by position j, turn query i by i " + std::string(more < 0 ? "− " : "+ ") +
           std::to_string(more < 0 ? -more : more) + ".";
  return mistake.remedy;
}

bool concerns(const Mistake& mistake, const Model& model) {
  const std::string_view name = mistake.name;
  const auto begins = [&](const char* start) { return name.starts_with(start); };
  const attention::Additions& a = model.additions;
  if (mistake.present(model)) return true;
  if (begins("groups_")) return model.n_kv_heads.has_value();
  if (name == "rotary_scaling_missing")
    return a.positions.rotary && a.positions.rotary->scaling.rule != positions::ScalingRule::none;
  if (begins("rotary_")) return a.positions.rotary.has_value();
  if (begins("norm_")) return a.normalise.has_value();
  if (begins("cap_")) return a.score_cap.has_value();
  if (begins("alibi_")) return a.positions.alibi.has_value();
  if (begins("sink_")) return a.sink.has_value();
  const bool of_scores =
      name == "bias_before_scale" || name == "bias_missing:positions" || name == "bias_missing:scores";
  return !of_scores || a.has_bias();
}

bool applies(const Mistake& mistake, const Model& model) {
  return !(mistake.made(model) == model);
}

}  // namespace core::mistakes
