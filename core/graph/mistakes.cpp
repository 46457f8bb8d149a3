#include "core/graph/mistakes.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/find.hpp"
#include "core/graph/matrices.hpp"
#include "core/graph/operations.hpp"
#include "core/graph/rounding.hpp"
#include "core/graph/validation.hpp"
#include "core/graph/visible.hpp"

namespace core::mistakes {
namespace {

using namespace attention;

// Deviations in the options of a model: made, detected and undone.

template <Precision precision, bool sums = false, Precision inputs = Precision::float64>
void compute_in(Model& m) {
  m.arithmetic = {precision, inputs, sums, m.arithmetic.softmax_precision};
}
constexpr auto compute_exactly = compute_in<Precision::float64>;
template <Precision precision, bool sums = false, Precision inputs = Precision::float64>
bool computes_in(const Model& m) {
  return m.arithmetic == Arithmetic{precision, inputs, sums, m.arithmetic.softmax_precision};
}
template <Precision precision>
void softmax_in(Model& m) {
  m.arithmetic.softmax_precision = precision;
}
template <Precision precision>
bool is_softmax_in(const Model& m) {
  return m.arithmetic.softmax_precision == precision;
}

/// Sets a number of heads that is often used by mistake: twice as many, half of them, or one.
void use_wrong_head_count(Model& m) {
  const std::size_t n = m.n_heads;
  m = with_heads(m, m.d_out() % (2 * n) == 0 ? 2 * n : n % 2 == 0 ? n / 2 : 1);
}
template <CombineRule rule>
void combine_by(Model& m) {
  if (m.n_heads > 1) m.merge = rule;
}

template <ScaleRule rule>
bool scales_by(const Model& m) {
  return m.scale.rule == rule;
}
attention::Scale by_d_head(const Model& m) {
  return {ScaleRule::factor, 1 / static_cast<double>(m.d_head())};
}
void mend_scale(Model& m) {
  m = with_scale(m, {});
}
arma::mat slopes_reversed(const positions::Alibi& alibi, std::size_t n_heads) {
  arma::mat slopes(1, n_heads);
  for (std::size_t h = 0; h < n_heads; ++h) slopes(0, h) = alibi_slope(alibi, n_heads - 1 - h, n_heads);
  return slopes;
}
bool has_slopes_reversed(const Model& m) {
  const auto& alibi = m.additions.positions.alibi;
  return m.n_heads > 1 && alibi && alibi->slopes && *alibi->slopes == slopes_reversed({}, m.n_heads);
}
void reverse_slopes(Model& m) {
  auto& alibi = m.additions.positions.alibi;
  if (!alibi) return;
  if (has_slopes_reversed(m)) return alibi->slopes.reset();
  arma::mat slopes = slopes_reversed(*alibi, m.n_heads);
  const bool is_the_same = arma::approx_equal(slopes, arma::mat(arma::fliplr(slopes)), "absdiff", 0);
  if (!is_the_same) alibi->slopes = std::move(slopes);
}

void mask_causally(Model& m) {
  m.mask.causal = true;
}
template <MaskAlignment align>
void align_mask(Model& m) {
  if (m.mask.causal && m.n_tokens() != m.n_keys()) m.mask.align = align;
}
/// Transposes the causal rule and cells set by hand.
void transpose_mask(Model& m) {
  if (m.mask.causal) m.mask.edge.transposed = !m.mask.edge.transposed;
  for (MaskCell& cell : m.mask.cells) std::swap(cell.row, cell.column);
  std::ranges::sort(m.mask.cells);
}
template <int diagonal>
void move_edge(Model& m) {
  if (m.mask.causal) m.mask.edge.diagonal = diagonal;
}
template <MaskMethod method>
void mask_by(Model& m) {
  if (m.mask.masks_keys()) m.mask.method = method;
}
template <int power>
constexpr double fill = power == 4 ? -1e4 : -1e9;
template <int power>
void fill_with(Model& m) {
  if (m.mask.masks_keys()) m.mask.method = MaskMethod::large_negative, m.mask.large_negative = fill<power>;
}
template <int power>
bool fills_with(const Model& m) {
  return m.mask.method == MaskMethod::large_negative && m.mask.large_negative == fill<power>;
}
void fill_with_infinity(Model& m) {
  m.mask.method = MaskMethod::negative_infinity, m.mask.large_negative = Mask().large_negative;
}
template <bool training>
void train(Model& m) {
  if (m.dropout.rate > 0) m.dropout.training = training;
}

// Deviations in the code of the mask, which is a copy of the model's.

void unmask_padding(Mask& mask, const Model& m) {
  Model masked = m;
  masked.mask = mask, masked.mistakes.clear();
  mask = with_padding_unmasked(masked).mask;
}
void mask_one_key(Mask& mask, const Model& m) {
  Model masked = m;
  masked.mask = mask;
  mask = with_key_masked(masked, m.n_keys() / 2).mask;
}

// Features that deviations concern.

bool has_kv_heads(const Model& m) {
  return m.n_kv_heads.has_value();
}
bool has_rotary(const Model& m) {
  return m.additions.positions.rotary.has_value();
}
bool has_rotary_scaling(const Model& m) {
  return has_rotary(m) && m.additions.positions.rotary->scaling.rule != positions::ScalingRule::none;
}
bool has_norm(const Model& m) {
  return m.additions.normalize.has_value();
}
bool has_cap(const Model& m) {
  return m.additions.softcap.has_value();
}
bool has_bias(const Model& m) {
  return m.additions.has_bias();
}
bool has_slopes(const Model& m) {
  return m.additions.positions.alibi.has_value();
}
bool has_sink(const Model& m) {
  return m.additions.sink.has_value();
}

// Deviations in the code, which is the graph.

using graph::Rotate;
using graph::Softmax;

bool lay_out(const Injection& in, Stage stage, const graph::HeadLayout& layout) {
  const graph::HeadLayout*& own = in.g.get<graph::SplitHeads>(stage)->inputs[0].layout;
  return std::exchange(own, &layout) != &layout;
}
bool transpose_weight(const Injection& in, ProjectionName part, Stage stage) {
  auto* linear = in.g.get<graph::Project>(stage);
  if (!linear) return false;
  const arma::mat& weight = find_linear(in.m, part)->weight;
  if (!weight.is_square() || weight.is_symmetric()) return false;
  linear->inputs[1].cells = "j:";
  return true;
}
bool leave_bias_out(const Injection& in, Stage stage) {
  auto* linear = in.g.get<graph::Project>(stage);
  if (!linear || !linear->has_bias()) return false;
  linear->inputs.resize(2);
  return true;
}
bool leave_biases_out(const Injection& in) {
  bool changes = false;
  for (const Stage stage : {graph::all_queries, graph::all_keys, graph::all_values, Stage::output})
    changes = leave_bias_out(in, stage) || changes;
  return changes;
}
bool leave_out(const Injection& in, std::initializer_list<Stage> stages) {
  const bool exists = in.g.find(*stages.begin());
  for (const Stage stage : stages) in.g.bypass(stage);
  return exists;
}

bool interleave(const Injection& in) {
  if (in.m.n_heads == 1 || in.m.d_head() == 1) return false;
  bool changes = false;
  for (const Stage stage : {Stage::queries, Stage::keys, Stage::values})
    changes = lay_out(in, stage, graph::interleaved) || changes;
  return changes;
}
bool interleave_combined(const Injection& in) {
  auto* combined = in.g.get<graph::CombineHeads>(Stage::concatenated);
  if (combined->inputs[0].layout != &graph::contiguous) return false;
  combined->inputs[0].layout = &graph::interleaved;
  return true;
}
template <bool queries, bool keys, bool values>
bool view_without_transpose(const Injection& in) {
  const bool many_queries = in.m.n_heads > 1 && in.m.n_tokens() > 1,
             many_keys = in.m.kv_heads() > 1 && in.m.n_keys() > 1;
  if ((queries && !many_queries) || ((keys || values) && !many_keys)) return false;
  bool changes = false;
  if (queries) changes = lay_out(in, Stage::queries, graph::untransposed);
  if (keys) changes = lay_out(in, Stage::keys, graph::untransposed) || changes;
  if (values) changes = lay_out(in, Stage::values, graph::untransposed) || changes;
  return changes;
}
bool tile_kv_heads(const Injection& in) {
  const std::size_t n = in.m.kv_heads();
  for (std::size_t h = 0; h < in.m.n_heads; ++h) in.g.kv_head[h] = h % n;
  return n > 1 && n < in.m.n_heads;
}

bool rotate_values(const Injection& in) {
  const auto* rotation = in.g.get<Rotate>(Stage::rotated_queries);
  if (!rotation || in.m.d_value() != in.m.d_head() || in.m.given.find(Stage::values)) return false;
  in.g.wrap(Stage::values, Rotate(Stage::values, rotation->rotary, position_of_key(in.m, 0)));
  return true;
}
bool norm_after_rotation(const Injection& in) {
  if (!in.g.find(Stage::rotated_queries) || !in.g.find(Stage::normed_queries)) return false;
  in.g.move_before(Stage::rotated_queries, Stage::normed_queries);
  in.g.move_before(Stage::rotated_keys, Stage::normed_keys);
  for (graph::Normalize* norm : in.g.all<graph::Normalize>()) norm->is_after_rotation = true;
  return true;
}
/// Changes every rotation; `change` returns whether it has an effect.
template <class Change>
bool change_rotations(const Injection& in, Change change) {
  bool changes = false;
  for (Rotate* rotation : in.g.all<Rotate>()) changes = change(rotation->rotary) || changes;
  return changes;
}
/// Returns whether more than one pair is rotated, each at its own frequency.
bool has_several_pairs(const positions::Rotary& rotary, const Model& m) {
  return positions::rotated_columns(rotary, m.d_head()) > 2;
}
bool swap_rotary_pairing(const Injection& in) {
  return change_rotations(in, [&](positions::Rotary& r) {
    using positions::Pairs;
    if (has_several_pairs(r, in.m)) r.pairs = r.pairs == Pairs::halves ? Pairs::neighbors : Pairs::halves;
    return has_several_pairs(r, in.m);
  });
}
bool use_default_base(const Injection& in) {
  constexpr double default_base = 10000;
  return change_rotations(in, [&](positions::Rotary& r) {
    return has_several_pairs(r, in.m) && !r.inverse_frequencies &&
           std::exchange(r.base, default_base) != default_base;
  });
}
bool leave_scaling_out(const Injection& in) {
  if (!has_rotary(in.m)) return false;
  const double base = in.m.additions.positions.rotary->base;  // dynamic scaling raises it
  return change_rotations(in, [base](positions::Rotary& r) {
    if (r.inverse_frequencies) return false;
    positions::Rotary unscaled = r;
    unscaled.base = base, unscaled.scaling = {};
    return std::exchange(r, unscaled) != unscaled;
  });
}
template <int by>
bool rotate_queries_by(const Injection& in) {
  auto* rotation = in.g.get<Rotate>(Stage::rotated_queries);
  if (rotation) rotation->offset += static_cast<int>(in.size == 0 ? by : in.size);
  return rotation;
}
bool rotate_backwards(const Injection& in) {
  for (Rotate* rotation : in.g.all<Rotate>()) {
    rotation->is_backwards = true;
    rotation->rotary.inverse_frequencies =
        arma::mat(-arma::rowvec(positions::frequencies(rotation->rotary, in.m.d_head())));
  }
  return in.g.find(Stage::rotated_queries);
}
bool rotate_queries_only(const Injection& in) {
  const auto* rotation = in.g.get<Rotate>(Stage::rotated_keys);
  if (rotation) in.g.replace(rotation, graph::Copy(rotation->inputs[0].source, "not rotated", "not rotated"));
  return rotation;
}

bool swap_queries_and_keys(const Injection& in) {
  auto* products = in.g.get<graph::DotProducts>(Stage::scores);
  if (!products || in.m.n_tokens() != in.m.n_keys()) return false;
  products->is_swapped = true;
  std::swap(products->inputs[0].source, products->inputs[1].source);
  return true;
}
bool scales(const Injection& in) {
  const auto* scale = in.g.get<graph::ScaleScores>(Stage::scaled_scores);
  return scale && scale->factor != 1;
}
bool scale_twice(const Injection& in) {
  auto* products = in.g.get<graph::DotProducts>(Stage::scores);
  if (!products || !scales(in)) return false;
  products->pre_scale = in.g.get<graph::ScaleScores>(Stage::scaled_scores)->factor;
  return true;
}
template <Stage stage>
bool move_before_scale(const Injection& in) {
  if (!in.g.find(stage) || !scales(in)) return false;
  in.g.move_before(stage, Stage::scaled_scores);
  return true;
}

bool leave_score_bias_out(const Injection& in, const graph::Source& bias) {
  auto* sum = in.g.get<graph::AddBiases>(Stage::biased_scores);
  if (!sum || std::erase_if(sum->inputs, [&](const graph::Input& x) { return x.source == bias; }) == 0)
    return false;
  if (sum->inputs.size() == 1) in.g.bypass(Stage::biased_scores);
  std::erase_if(in.g.nodes, [&](const graph::Node& node) { return graph::Source(node.stage) == bias; });
  return true;
}
bool softmax_over_queries(const Injection& in) {
  for (Softmax* softmax : in.g.all<Softmax>()) in.g.replace(softmax, graph::SoftmaxOverQueries(*softmax));
  return true;
}
bool leave_sink_out(const Injection& in) {
  bool changes = false;
  for (Softmax* softmax : in.g.all<Softmax>()) {
    changes = softmax->inputs.size() > 1 || changes;
    softmax->inputs.resize(1);
  }
  return changes;
}
template <BlockRule rule>
bool take_blocks(const Injection& in) {
  const Blocks blocks{rule, in.size > 0 ? static_cast<std::size_t>(in.size) : default_block_size(in.m)};
  if (blocks.size >= in.m.n_keys()) return false;
  bool changes = false;
  for (Softmax* softmax : in.g.all<Softmax>())
    if (!dynamic_cast<graph::SoftmaxOverQueries*>(softmax))
      in.g.replace(softmax, graph::SoftmaxInBlocks(*softmax, blocks)), changes = true;
  return changes;
}

bool leave_output_projection_out(const Injection& in) {
  const auto* linear = in.g.get<graph::Project>(Stage::output);
  if (linear) in.g.replace(linear, graph::Unprojected(Stage::concatenated));
  return linear;
}

// clang-format off
constexpr std::array table{
    Mistake{"float32_precision", "float32_precision", "float32 arithmetic",
            "Every stage is rounded to float32, which has 24 binary digits.",
            "Compare as float32 does, with a tolerance, or compute in float64: .double().",
            Stage::embeddings, {}, {}, {}, compute_in<Precision::float32>, computes_in<Precision::float32>, compute_exactly},
    Mistake{"tf32_precision", "tf32_precision", "TF32 products",
            "Both factors of every matrix product are rounded to 11 binary digits (TF32), as graphics cards may do; sums are float32.",
            "Ask for exact products: torch.set_float32_matmul_precision('highest').",
            Stage::embeddings, {}, {}, {}, compute_in<Precision::float32, false, Precision::tf32>, computes_in<Precision::float32, false, Precision::tf32>, compute_exactly},
    Mistake{"half_precision", "half_precision", "float16 arithmetic",
            "Every stage is rounded to float16, which has 11 binary digits and ends at 65504; sums on the way are finer.",
            "Compute in float32, or at least the scores and the softmax.",
            Stage::embeddings, {}, {}, {}, compute_in<Precision::float16>, computes_in<Precision::float16>, compute_exactly},
    Mistake{"half_precision_sums", "half_precision_sums", "float16 sums",
            "Products and sums are rounded to float16 term by term, and so is every stage.",
            "Add up in float32, as matrix products of float16 can, or compute all in float32.",
            Stage::embeddings, {}, {}, {}, compute_in<Precision::float16, true>, computes_in<Precision::float16, true>, compute_exactly},
    Mistake{"bfloat16_precision", "bfloat16_precision", "bfloat16 arithmetic",
            "Every stage is rounded to bfloat16, which has 8 binary digits.",
            "Compute in float32, or at least the scores, the softmax and the sums.",
            Stage::embeddings, {}, {}, {}, compute_in<Precision::bfloat16>, computes_in<Precision::bfloat16>, compute_exactly},
    Mistake{"weight_untransposed:query", "weight_untransposed:query", "query weight untransposed",
            "The query weight is used as its transpose: a PyTorch Linear keeps out × in and computes x·Wᵀ.",
            "Transpose the query weight, or compute x·Wᵀ with it.",
            Stage::queries, {}, [](const Injection& in) { return transpose_weight(in, ProjectionName::query, graph::all_queries); }},
    Mistake{"weight_untransposed:key", "weight_untransposed:key", "key weight untransposed",
            "The key weight is used as its transpose: a PyTorch Linear keeps out × in and computes x·Wᵀ.",
            "Transpose the key weight, or compute x·Wᵀ with it.",
            Stage::keys, {}, [](const Injection& in) { return transpose_weight(in, ProjectionName::key, graph::all_keys); }},
    Mistake{"weight_untransposed:value", "weight_untransposed:value", "value weight untransposed",
            "The value weight is used as its transpose: a PyTorch Linear keeps out × in and computes x·Wᵀ.",
            "Transpose the value weight, or compute x·Wᵀ with it.",
            Stage::values, {}, [](const Injection& in) { return transpose_weight(in, ProjectionName::value, graph::all_values); }},
    Mistake{"weight_untransposed:output", "weight_untransposed:output", "output weight untransposed",
            "The output weight is used as its transpose: a PyTorch Linear keeps out × in and computes x·Wᵀ.",
            "Transpose the output weight, or compute x·Wᵀ with it.",
            Stage::output, {}, [](const Injection& in) { return transpose_weight(in, ProjectionName::output, Stage::output); }},
    Mistake{"bias_missing", "bias_missing", "all biases missing",
            "No bias is added after the projections.", "Add the biases of all projections.",
            Stage::queries, {}, leave_biases_out},
    Mistake{"bias_missing:query", "bias_missing", "query bias missing",
            "The bias of the query projection is not added.", "Add the bias of the query projection.",
            Stage::queries, {}, [](const Injection& in) { return leave_bias_out(in, graph::all_queries); }},
    Mistake{"bias_missing:key", "bias_missing", "key bias missing",
            "The bias of the key projection is not added.", "Add the bias of the key projection.",
            Stage::keys, {}, [](const Injection& in) { return leave_bias_out(in, graph::all_keys); }},
    Mistake{"bias_missing:value", "bias_missing", "value bias missing",
            "The bias of the value projection is not added.", "Add the bias of the value projection.",
            Stage::values, {}, [](const Injection& in) { return leave_bias_out(in, graph::all_values); }},
    Mistake{"bias_missing:output", "bias_missing", "output bias missing",
            "The bias of the output projection is not added.", "Add the bias of the output projection.",
            Stage::output, {}, [](const Injection& in) { return leave_bias_out(in, Stage::output); }},
    Mistake{"heads_interleaved", "heads_interleaved", "heads interleaved",
            "Head h has columns h, h + n_heads, … instead of adjacent ones: the columns are reshaped to (d_head, n_heads).",
            "Reshape the columns to (n_heads, d_head), in that order.",
            Stage::queries, {}, interleave},
    Mistake{"view_without_transpose", "view_without_transpose", "heads viewed without transpose",
            "Queries, keys and values are viewed as (n_heads, n_tokens, d_head) without the transpose, which mixes tokens and heads.",
            "View as (n_tokens, n_heads, d_head), then swap tokens and heads: transpose(1, 2).",
            Stage::queries, {}, view_without_transpose<true, true, true>},
    Mistake{"view_without_transpose:query", "view_without_transpose", "queries viewed without transpose",
            "The queries are viewed as (n_heads, n_tokens, d_head) without the transpose, which mixes tokens and heads.",
            "View the queries as (n_tokens, n_heads, d_head), then swap tokens and heads: transpose(1, 2).",
            Stage::queries, {}, view_without_transpose<true, false, false>},
    Mistake{"view_without_transpose:key", "view_without_transpose", "keys viewed without transpose",
            "The keys are viewed as (n_heads, n_tokens, d_head) without the transpose, which mixes tokens and heads.",
            "View the keys as (n_tokens, n_heads, d_head), then swap tokens and heads: transpose(1, 2).",
            Stage::keys, {}, view_without_transpose<false, true, false>},
    Mistake{"view_without_transpose:value", "view_without_transpose", "values viewed without transpose",
            "The values are viewed as (n_heads, n_tokens, d_head) without the transpose, which mixes tokens and heads.",
            "View the values as (n_tokens, n_heads, d_head), then swap tokens and heads: transpose(1, 2).",
            Stage::values, {}, view_without_transpose<false, false, true>},
    Mistake{"n_heads_other", "n_heads_other", "wrong number of heads",
            "The columns are split into a different number of heads.",
            "Split into as many heads as the model has.",
            Stage::queries, {}, {}, {}, use_wrong_head_count},
    Mistake{"groups_tiled", "groups_tiled", "KV heads tiled",
            "Keys and values are repeated as a whole, so that head h uses KV head h mod n_kv_heads.",
            "Repeat each KV head in place: repeat_interleave(n_heads // n_kv_heads, dim=1), not repeat().",
            Stage::keys, has_kv_heads, tile_kv_heads},
    Mistake{"rotary_on_values", "rotary_on_values", "values rotated",
            "RoPE is applied to the values, too.", "Apply RoPE to queries and keys only.",
            Stage::values, has_rotary, rotate_values},
    Mistake{"norm_missing", "norm_missing", "QK norm missing",
            "Queries and keys are not normalized.", "Normalize each head's queries and keys: q_norm, k_norm.",
            Stage::normed_queries, has_norm, [](const Injection& in) { return leave_out(in, {Stage::normed_queries, Stage::normed_keys}); }},
    Mistake{"norm_after_rotation", "norm_after_rotation", "QK norm after RoPE",
            "Queries and keys are normalized after RoPE.", "Normalize queries and keys first, then apply RoPE.",
            Stage::normed_queries, has_norm, norm_after_rotation},
    Mistake{"rotary_missing", "rotary_missing", "RoPE missing",
            "RoPE is applied to neither queries nor keys.", "Apply RoPE to queries and keys before the scores.",
            Stage::rotated_queries, has_rotary, [](const Injection& in) { return leave_out(in, {Stage::rotated_queries, Stage::rotated_keys}); }},
    Mistake{"rotary_other_pairs", "rotary_other_pairs", "wrong RoPE pairs",
            "RoPE pairs the columns differently: halves (p with p + d/2) instead of adjacent ones (2p with 2p + 1), or the other way round.",
            "Use the pairs that the weights were trained with: halves in Hugging Face's Llama, adjacent columns in Meta's.",
            Stage::rotated_queries, has_rotary, swap_rotary_pairing},
    Mistake{"rotary_off_by_one", "rotary_off_by_one", "query positions one too high",
            "The RoPE positions of queries, or of keys, are off by one.",
            "Count the positions of queries and keys from the same 0.",
            Stage::rotated_queries, has_rotary, rotate_queries_by<1>},
    Mistake{"rotary_off_by_one:earlier", "rotary_off_by_one", "query positions one too low",
            "The RoPE positions of queries, or of keys, are off by one.",
            "Count the positions of queries and keys from the same 0.",
            Stage::rotated_queries, has_rotary, rotate_queries_by<-1>},
    Mistake{"rotary_base", "rotary_base", "RoPE base 10000",
            "The RoPE base is not the model's, but another one such as 10000, the most common.",
            "Use the base of the model: rope_theta in its config.json.",
            Stage::rotated_queries, has_rotary, use_default_base},
    Mistake{"rotary_scaling_missing", "rotary_scaling_missing", "RoPE scaling missing",
            "The RoPE frequencies are not scaled for long texts.",
            "Scale the frequencies as rope_scaling in config.json says.",
            Stage::rotated_queries, has_rotary_scaling, leave_scaling_out},
    Mistake{"rotary_backwards", "rotary_backwards", "RoPE with the opposite sign",
            "Queries and keys are rotated by the negative angle: the signs of the sines are swapped.",
            "Rotate by the positive angle: first·cos − second·sin, second·cos + first·sin.",
            Stage::rotated_queries, has_rotary, rotate_backwards},
    Mistake{"rotary_queries_only", "rotary_queries_only", "RoPE on queries only",
            "RoPE is applied to the queries but not to the keys.", "Apply RoPE to the keys as well, each at its own position.",
            Stage::rotated_keys, has_rotary, rotate_queries_only},
    Mistake{"query_key_swapped", "query_key_swapped", "queries and keys swapped",
            "Queries and keys are swapped, so the scores are transposed.",
            "Multiply the queries by the transposed keys: Q·Kᵀ.",
            Stage::queries, {}, swap_queries_and_keys},
    Mistake{"no_scale", "no_scale", "no scale",
            "The scores are not divided by √d_head.", "Divide the scores by √d_head before mask and softmax.",
            Stage::scaled_scores, {}, {}, {}, [](Model& m) { m = with_scale(m, {ScaleRule::none, 1}); }, scales_by<ScaleRule::none>, mend_scale},
    Mistake{"scale_sqrt_d_model", "scale_sqrt_d_model", "scaled by √d_model",
            "The scores are divided by √d_model, the width of all heads together.",
            "Divide by √d_head, the width of one head.",
            Stage::scaled_scores, {}, {}, {}, [](Model& m) { m = with_scale(m, {ScaleRule::inverse_sqrt_d_model, 1}); }, scales_by<ScaleRule::inverse_sqrt_d_model>, mend_scale},
    Mistake{"scale_d_head", "scale_d_head", "scaled by d_head",
            "The scores are divided by d_head itself.", "Take the square root: divide by √d_head.",
            Stage::scaled_scores, {}, {}, {}, [](Model& m) { m = with_scale(m, by_d_head(m)); }, [](const Model& m) { return m.scale == by_d_head(m); }, mend_scale},
    Mistake{"scale_twice", "scale_twice", "scaled twice",
            "The scale is applied to the queries and again to the scores.",
            "Scale once: scaled_dot_product_attention() does it itself.",
            Stage::scores, {}, scale_twice},
    Mistake{"cap_before_scale", "cap_before_scale", "soft-capping before scaling",
            "The scores are soft-capped before they are scaled.", "Scale the scores first, then apply soft-capping: c·tanh(s/c).",
            Stage::scaled_scores, has_cap, move_before_scale<Stage::capped_scores>},
    Mistake{"bias_before_scale", "bias_before_scale", "attention bias before scaling",
            "The attention bias is added before scaling, so that it is scaled as well.",
            "Add the attention bias to the scaled scores.",
            Stage::scaled_scores, has_bias, move_before_scale<Stage::biased_scores>},
    Mistake{"cap_missing", "cap_missing", "soft-capping missing",
            "The scores are not soft-capped.", "Apply soft-capping to the scaled scores, before the mask: c·tanh(s/c).",
            Stage::capped_scores, has_cap, [](const Injection& in) { return leave_out(in, {Stage::capped_scores}); }},
    Mistake{"bias_missing:positions", "bias_missing", "position bias missing",
            "The relative position bias is not added to the scores.", "Add the position bias to the scaled scores.",
            Stage::position_bias, has_bias, [](const Injection& in) { return leave_score_bias_out(in, Stage::position_bias); }},
    Mistake{"alibi_slopes_reversed", "alibi_slopes_reversed", "ALiBi slopes reversed",
            "The ALiBi slopes are in reverse order: the first head has the slope of the last.",
            "Give head 0 the first slope: 2^(−8/n_heads) where n_heads is a power of two.",
            Stage::position_bias, has_slopes, {}, {}, reverse_slopes, has_slopes_reversed, reverse_slopes},
    Mistake{"bias_missing:scores", "bias_missing", "attention bias missing",
            "The attention bias is not added to the scores.", "Add the attention bias to the scaled scores.",
            Stage::biased_scores, has_bias, [](const Injection& in) { return leave_score_bias_out(in, MatrixName::score_bias); }},
    Mistake{"no_mask", "no_mask", "no mask",
            "Every query attends to every key, later ones included.", "Mask the scores before the softmax.",
            Stage::mask, {}, {}, {}, [](Model& m) { m.mask = m.mask.with_nothing_masked(); }, [](const Model& m) { return !m.mask.masks_keys(); }, mask_causally},
    Mistake{"causal_unwanted", "causal_unwanted", "causal mask unwanted",
            "A causal mask is applied, although every query may attend to later keys.",
            "Leave the causal mask out: is_causal=False.",
            Stage::mask, {}, {}, {}, mask_causally, {}, [](Model& m) { m.mask.causal = false; }},
    Mistake{"padding_missing", "padding_missing", "padding mask missing",
            "Padding keys are not masked.",
            "Mask padding keys before the softmax: masked_fill(is_padding, float('-inf')).",
            Stage::mask, {}, {}, unmask_padding},
    Mistake{"key_missing", "key_missing", "a key missing",
            "One key is masked for every query, for example by a loop or a cache that skips it.",
            "Unmask the key for the queries that may attend to it.",
            Stage::mask, {}, {}, mask_one_key},
    Mistake{"mask_aligned_first", "mask_aligned_first", "mask from the first key on",
            "The causal mask aligns the queries with the first keys instead of the last: tril() of a matrix that is not square, or is_causal=True.",
            "Shift the diagonal by n_keys − n_queries.",
            Stage::mask, {}, {}, {}, align_mask<MaskAlignment::first>, [](const Model& m) { return m.mask.align == MaskAlignment::first; }, align_mask<MaskAlignment::last>},
    Mistake{"mask_aligned_last", "mask_aligned_last", "mask up to the last key",
            "The causal mask aligns the queries with the last keys instead of the first.",
            "Align the mask with the first key: tril(), or is_causal=True.",
            Stage::mask, {}, {}, {}, align_mask<MaskAlignment::last>, {}, align_mask<MaskAlignment::first>},
    Mistake{"mask_transposed", "mask_transposed", "mask transposed",
            "The mask is transposed: queries attend to later tokens instead of earlier ones.",
            "Mask the positions above the diagonal: triu(diagonal=1), or keep tril().",
            Stage::mask, {}, {}, {}, transpose_mask, [](const Model& m) { return m.mask.edge.transposed; }, transpose_mask},
    Mistake{"mask_hides_diagonal", "mask_hides_diagonal", "diagonal masked",
            "No query attends to its own key: the diagonal is masked as well.",
            "Mask from the next diagonal on: triu(diagonal=1), not triu().",
            Stage::mask, {}, {}, {}, move_edge<-1>, [](const Model& m) { return m.mask.edge.diagonal < 0; }, move_edge<0>},
    Mistake{"mask_shows_next", "mask_shows_next", "next token unmasked",
            "Each query also attends to the next token: the mask starts one diagonal too late.",
            "Mask from the previous diagonal on: triu(diagonal=1), not triu(diagonal=2).",
            Stage::mask, {}, {}, {}, move_edge<1>, [](const Model& m) { return m.mask.edge.diagonal > 0; }, move_edge<0>},
    Mistake{"window_missing", "window_missing", "sliding window missing",
            "The sliding window is missing: queries attend to keys at any distance.",
            "Mask keys beyond the sliding window.",
            Stage::mask, {}, {}, [](Mask& mask, const Model&) { mask.window = {}; }},
    Mistake{"window_off_by_one", "window_off_by_one", "sliding window one key too wide",
            "The sliding window contains one key too many on the left: it does not count the query itself.",
            "Attend to keys from position − left up to the query's own.",
            Stage::mask, {}, {}, [](Mask& mask, const Model&) { if (mask.window.left) ++*mask.window.left; }},
    Mistake{"window_off_by_one:fewer", "window_off_by_one", "sliding window one key too narrow",
            "The sliding window contains one key too few on the left: it counts the query itself.",
            "Attend to keys from position − left up to the query's own.",
            Stage::mask, {}, {}, [](Mask& mask, const Model&) { if (mask.window.left && *mask.window.left > 0) --*mask.window.left; }},
    Mistake{"documents_missing", "documents_missing", "document mask missing",
            "Packed documents are not separated: queries attend to keys of earlier documents.",
            "Mask keys of other documents.",
            Stage::mask, {}, {}, [](Mask& mask, const Model&) { mask.documents.clear(); }},
    Mistake{"mask_after_softmax", "mask_after_softmax", "mask after the softmax",
            "Masked weights become 0 only after the softmax, so that rows sum to less than 1.",
            "Mask the scores with −∞ before the softmax, or divide each row by its sum.",
            Stage::masked_scores, {}, {}, {}, mask_by<MaskMethod::zero_after_softmax>, [](const Model& m) { return m.mask.method == MaskMethod::zero_after_softmax; }, mask_by<MaskMethod::negative_infinity>},
    Mistake{"mask_finite", "mask_finite", "mask with −10⁹",
            "Masked scores become a large negative number such as −10⁹ instead of −∞.", "Use −∞: float('-inf').",
            Stage::masked_scores, {}, {}, {}, fill_with<9>, fills_with<9>, fill_with_infinity},
    Mistake{"mask_finite:1e4", "mask_finite", "mask with −10⁴",
            "Masked scores become a large negative number such as −10⁴ instead of −∞.", "Use −∞: float('-inf').",
            Stage::masked_scores, {}, {}, {}, fill_with<4>, fills_with<4>, fill_with_infinity},
    Mistake{"softmax_over_queries", "softmax_over_queries", "softmax over queries",
            "The softmax runs over the other axis: columns sum to 1, rows do not.",
            "Run the softmax over the keys: dim=-1.",
            Stage::unmasked_weights, {}, softmax_over_queries},
    Mistake{"sink_missing", "sink_missing", "attention sink missing",
            "exp(sink) is not added to the softmax sum, so that each row sums to 1.",
            "Append the sink to the scores of each row, run the softmax, and drop its column.",
            Stage::unmasked_weights, has_sink, leave_sink_out},
    Mistake{"blocks_not_rescaled", "blocks_not_rescaled", "softmax blocks not rescaled",
            "A blockwise softmax does not multiply its running sum by exp(m_old − m_new) when the maximum grows.",
            "Multiply the running sum and the running context vectors by exp(m_old − m_new) in every block.",
            Stage::unmasked_weights, {}, take_blocks<BlockRule::not_rescaled>},
    Mistake{"last_block_dropped", "last_block_dropped", "last block of keys skipped",
            "The keys are processed in blocks, and the last block is skipped.",
            "Round the number of blocks up: (n_keys + size - 1) // size.",
            Stage::unmasked_weights, {}, take_blocks<BlockRule::last_dropped>},
    Mistake{"softmax_half_precision", "softmax_half_precision", "float16 softmax",
            "Only the softmax is computed in float16: its inputs and outputs are rounded.",
            "Compute the softmax in float32: softmax(scores, dim=-1, dtype=torch.float32).",
            Stage::unmasked_weights, {}, {}, {}, softmax_in<Precision::float16>, is_softmax_in<Precision::float16>, softmax_in<Precision::float64>},
    Mistake{"softmax_bfloat16_precision", "softmax_bfloat16_precision", "bfloat16 softmax",
            "Only the softmax is computed in bfloat16: its inputs and outputs are rounded.",
            "Compute the softmax in float32: softmax(scores, dim=-1, dtype=torch.float32).",
            Stage::unmasked_weights, {}, {}, {}, softmax_in<Precision::bfloat16>, is_softmax_in<Precision::bfloat16>, softmax_in<Precision::float64>},
    Mistake{"dropout_before_softmax", "dropout_before_softmax", "dropout before the softmax",
            "Dropout is applied to the scores: a dropped score is 0, which does not remove the key.",
            "Apply dropout to the weights, after the softmax.",
            Stage::masked_scores, {}, {}, {}, [](Model& m) { if (m.dropout.active()) m.dropout.place = DropoutPlace::scaled_scores; }, [](const Model& m) { return m.dropout.place != DropoutPlace::weights; }, [](Model& m) { m.dropout.place = DropoutPlace::weights; }},
    Mistake{"dropout_unscaled", "dropout_unscaled", "dropout not rescaled",
            "Kept weights are not multiplied by 1/(1 − p).",
            "Multiply the kept weights by 1/(1 − p).",
            Stage::masked_scores, {}, {}, {}, [](Model& m) { if (m.dropout.active()) m.dropout.rescale = false; }, [](const Model& m) { return !m.dropout.rescale; }, [](Model& m) { m.dropout.rescale = true; }},
    Mistake{"dropout_off", "dropout_off", "dropout off",
            "Nothing is dropped, as in evaluation mode.", "Turn dropout on: model.train().",
            Stage::masked_scores, {}, {}, {}, train<false>, [](const Model& m) { return m.dropout.rate > 0 && !m.dropout.training; }, train<true>},
    Mistake{"merge_without_transpose", "merge_without_transpose", "heads combined without transpose",
            "The heads are reshaped into one matrix without the transpose, which mixes tokens and heads.",
            "Transpose heads and tokens first: contexts.transpose(1, 2).reshape(…).",
            Stage::concatenated, {}, {}, {}, combine_by<CombineRule::reshape_without_transpose>, [](const Model& m) { return m.merge == CombineRule::reshape_without_transpose; }, combine_by<CombineRule::concatenate>},
    Mistake{"output_projection_missing", "output_projection_missing", "output projection missing",
            "The result is the concatenated heads, without the output projection.",
            "Multiply the concatenated heads by the output projection.",
            Stage::output, {}, leave_output_projection_out},
};

/// Forms of these that no menu offers; the check finds them, and sessions store them.
constexpr std::array more{
    Mistake{"heads_interleaved:combined", "heads_interleaved", "heads interleaved when combined",
            "Column k of head h goes to column k · n_heads + h: combined as (d_head, n_heads).",
            "Concatenate the context vectors of the heads, in that order.",
            Stage::concatenated, {}, interleave_combined},
    Mistake{"blocks_not_rescaled:sum", "blocks_not_rescaled", "softmax blocks: sum not rescaled",
            "A softmax that takes the keys block by block does not multiply its sum by exp(m_old − m_new) when the maximum grows.",
            "Multiply the running sum by exp(m_old − m_new) in every block.",
            Stage::unmasked_weights, {}, take_blocks<BlockRule::sum_not_rescaled>},
    Mistake{"blocks_not_rescaled:contexts", "blocks_not_rescaled", "softmax blocks: context vectors not rescaled",
            "A softmax that takes the keys block by block does not multiply its context vectors by exp(m_old − m_new) when the maximum grows.",
            "Multiply the running context vectors by exp(m_old − m_new) in every block.",
            Stage::unmasked_weights, {}, take_blocks<BlockRule::contexts_not_rescaled>},
};
// clang-format on

/// Returns the index of a row among all, which is the order of injection.
std::size_t injection_order(const Mistake* mistake) {
  const auto in = [&](const auto& rows) {
    return static_cast<std::size_t>(std::ranges::find(rows, mistake, [](const Mistake& m) { return &m; }) -
                                    rows.begin());
  };
  const std::size_t place = in(table);
  return place < table.size() ? place : place + in(more);
}

}  // namespace

std::span<const Mistake> mistakes() {
  return table;
}

const Mistake* find_mistake(std::string_view name) {
  return find_by(table, name, &Mistake::name);
}

const Mistake* find_any_mistake(std::string_view name) {
  const Mistake* mistake = find_mistake(name);
  return mistake ? mistake : find_by(more, name, &Mistake::name);
}

bool is_injected(const Mistake& mistake, const Model& model) {
  if (!mistake.apply_to_model)
    return std::ranges::find(model.mistakes, &mistake, &InjectedMistake::mistake) != model.mistakes.end();
  return mistake.is_in_model && mistake.is_in_model(model);
}

bool is_fixable(const Mistake& mistake) {
  return !mistake.apply_to_model || mistake.fix_model;
}

Model with_mistake(Model model, const Mistake& mistake, std::int64_t size) {
  std::erase_if(model.mistakes,
                [&](const InjectedMistake& injected) { return injected.mistake == &mistake; });
  const auto next = std::ranges::find_if(model.mistakes, [&](const InjectedMistake& injected) {
    return injection_order(injected.mistake) > injection_order(&mistake);
  });
  model.mistakes.insert(next, {&mistake, size});
  return model;
}

Model injected(const Mistake& mistake, const Model& model, std::int64_t size) {
  if (mistake.apply_to_model) {
    Model next = model;
    mistake.apply_to_model(next);
    return next;
  }
  Model next = with_mistake(model, mistake, size), seen = next;
  seen.mistakes.clear();
  graph::Graph g = graph::attention(seen);
  bool does = false;
  std::erase_if(next.mistakes, [&](const InjectedMistake& injected) {  // those without effect
    const auto& [row, own_size] = injected;
    const Mask before = effective_mask(seen);
    seen.mistakes.push_back(injected);
    const bool changes =
        row->apply_to_graph ? row->apply_to_graph({g, seen, own_size}) : effective_mask(seen) != before;
    does = does || (changes && row == &mistake);
    return !changes;
  });
  return does ? next : model;
}

Model without_mistake(const Mistake& mistake, const Model& model) {
  Model next = model;
  if (mistake.fix_model) mistake.fix_model(next);
  std::erase_if(next.mistakes, [&](const InjectedMistake& injected) { return injected.mistake == &mistake; });
  return next;
}

std::string fix_in(const Mistake& mistake, const Model& model) {
  const std::string name = mistake.name;
  if (name == "groups_tiled")
    return "Repeat each head of keys and values in place, repeat_interleave(" +
           std::to_string(model.n_heads / model.kv_heads()) + ", dim=1), not repeat().";
  if (model.n_tokens() == model.n_keys()) return mistake.fix;
  const std::int64_t diagonal = attention::aligned_query_position(model, 0);
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
    return "Where key j is rotated by position j, rotate query i by i " +
           std::string(more < 0 ? "− " : "+ ") + std::to_string(more < 0 ? -more : more) + ".";
  return mistake.fix;
}

bool is_relevant(const Mistake& mistake, const Model& model) {
  return !mistake.has_feature || mistake.has_feature(model) || is_injected(mistake, model);
}

bool has_effect(const Mistake& mistake, const Model& model) {
  return !(injected(mistake, model) == model);
}

bool deviates(const Model& model) {
  return !model.mistakes.empty() || model.arithmetic != Arithmetic() || model.mask.edge != MaskEdge() ||
         model.mask.large_negative != Mask().large_negative || model.dropout.place != DropoutPlace::weights;
}

Mask effective_mask(const Model& model) {
  Mask mask = model.mask;
  for (const auto& [mistake, size] : model.mistakes)
    if (mistake->apply_to_mask) mistake->apply_to_mask(mask, model);
  return mask;
}

Model effective_model(Model m) {
  graph::Graph g = graph::attention(m);
  const auto reads = [&](MatrixName name) {
    return std::ranges::any_of(g.nodes, [&](const graph::Node& node) {
      const auto& inputs = node.operation->inputs;
      return std::ranges::find(inputs, graph::Source(name), &graph::Input::source) != inputs.end();
    });
  };
  for (const auto& [stage, part, bias] :
       {std::tuple{graph::all_queries, ProjectionName::query, MatrixName::query_bias},
        std::tuple{graph::all_keys, ProjectionName::key, MatrixName::key_bias},
        std::tuple{graph::all_values, ProjectionName::value, MatrixName::value_bias},
        std::tuple{Stage::output, ProjectionName::output, MatrixName::output_bias}}) {
    Linear* linear = find_linear(m, part);
    if (!linear) continue;
    if (!reads(bias)) linear->bias.reset();
    if (const auto* used = g.get<graph::Project>(stage); used && used->is_transposed())
      linear->weight = arma::mat(linear->weight->t());
  }
  if (m.projections && !reads(MatrixName::output_weight)) m.projections->output.reset();
  Additions& added = m.additions;
  if (!reads(MatrixName::query_norm)) added.normalize.reset();
  if (!reads(MatrixName::frequencies)) added.positions.rotary.reset();
  if (!g.find(Stage::position_bias)) added.positions.alibi.reset(), added.positions.relative.reset();
  if (m.has_mistake("sink_missing")) added.sink.reset();
  if (!reads(MatrixName::score_bias)) added.score_bias.clear();
  if (!g.find(Stage::capped_scores)) added.softcap.reset();
  return m;
}

int query_offset(const Model& model) {
  if (model.mistakes.empty()) return 0;
  graph::Graph g = graph::attention(model);
  const auto* rotation = g.get<Rotate>(Stage::rotated_queries);
  return rotation ? rotation->offset : 0;
}

Model with_query_offset(Model model, int offset) {
  std::erase_if(model.mistakes, [](const InjectedMistake& injected) {
    return std::string_view(injected.mistake->cause) == "rotary_off_by_one";
  });
  if (offset == 0) return model;
  return with_mistake(std::move(model),
                      *find_mistake(offset > 0 ? "rotary_off_by_one" : "rotary_off_by_one:earlier"), offset);
}

namespace {

void round(attention::SharedMatrix& numbers, attention::Precision precision) {
  numbers = attention::rounded(precision, *numbers);
}

}  // namespace

Model with_scale(const Model& model, attention::Scale scale) {
  Model next = model;
  next.scale = scale;
  return attention::scale_factor(next) == attention::scale_factor(model) ? model : next;
}

Model with_projections_swapped(const Model& model) {
  Model next = model;
  if (!next.projections) return next;
  next.projections->query = model.projections->key;
  next.projections->key = model.projections->query;
  next.mistakes.clear();
  for (const auto& [mistake, size] : model.mistakes) {  // deviations follow their projection
    std::string name = mistake->name;
    for (const std::string of : {"weight_untransposed:", "bias_missing:"})
      if (mistake->name == of + "query")
        name = of + "key";
      else if (mistake->name == of + "key")
        name = of + "query";
    next = with_mistake(std::move(next), *find_any_mistake(name), size);
  }
  return next;
}

Model with_heads(const Model& model, std::size_t n_heads) {
  const bool has_per_head_data =
      !model.given.empty() || !model.heads_off.empty() || !model.dropout.given.empty();
  if (has_per_head_data || n_heads == 0 || model.d_out() % n_heads != 0) return model;
  Model next = model;
  next.n_heads = n_heads;
  if (model.n_kv_heads) {  // as many as their columns can hold
    const std::size_t columns = *model.n_kv_heads * model.d_head(), d_head = model.d_out() / n_heads;
    if (columns % d_head != 0) return model;
    next.n_kv_heads = columns / d_head;
  }
  return model.additions == attention::Additions() || !attention::check(next) ? next : model;
}

Model with_padding_unmasked(const Model& model) {
  Model next = model;
  next.mask.hidden_keys.clear();
  if (model.mask.cells.empty()) return next;
  const attention::SequenceMask sequence_mask(model, 0);
  std::vector<std::size_t> masked_keys(model.n_keys()), seen(model.n_keys());
  for (std::size_t i = 0; i < model.n_tokens(); ++i)
    for (std::size_t j = 0; j < model.n_keys(); ++j) {
      const MaskCell* cell = model.mask.find(i, j);
      if (!sequence_mask.by_rules(i, j).visible) continue;  // masked anyway
      ++(cell && !cell->visible ? masked_keys : seen)[j];
    }
  std::erase_if(next.mask.cells, [&](const MaskCell& cell) {
    return !cell.visible && masked_keys[cell.column] > 0 && seen[cell.column] == 0;
  });
  return next;
}

Model with_key_masked(const Model& model, std::size_t key) {
  if (key >= model.n_keys() || model.n_keys() == 1) return model;
  Model next = model;
  next.mask.hidden_keys.resize(model.sequences.size());
  for (std::vector<std::size_t>& masked_keys : next.mask.hidden_keys) {
    const auto place = std::ranges::lower_bound(masked_keys, key);
    if (place == masked_keys.end() || *place != key) masked_keys.insert(place, key);
  }
  return next;
}

std::size_t default_block_size(const Model& model) {
  std::size_t size = 1;
  while (4 * size <= model.n_keys()) size *= 2;
  return size;
}

Model with_rounded_inputs(const Model& model, attention::Precision precision) {
  Model next = model;
  for (attention::Sequence& sequence : next.sequences) {
    round(sequence.embeddings, precision);
    if (next.has_key_embeddings()) round(sequence.key_embeddings, precision);
  }
  for (const ProjectionName part : attention::all_parts)
    if (Linear* linear = find_linear(next, part)) {
      round(linear->weight, precision);
      if (linear->bias) round(*linear->bias, precision);
    }
  for (attention::GivenStage& given : next.given.stages)
    if (given.stage != attention::Stage::dropout_mask)
      for (attention::SharedMatrix& matrix : given.matrices) round(matrix, precision);
  attention::Additions& added = next.additions;
  if (added.normalize) round(added.normalize->query, precision), round(added.normalize->key, precision);
  if (added.positions.relative) round(added.positions.relative->table, precision);
  for (attention::SharedMatrix& bias : added.score_bias) round(bias, precision);
  if (added.sink) round(*added.sink, precision);
  return next;
}

}  // namespace core::mistakes
