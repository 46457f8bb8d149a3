#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/graph/bugs.hpp"
#include "core/graph/model_changes.hpp"

/// Bugs that can be injected: of precision, projections, heads, norms and rotary positions.
namespace core::bugs {
namespace {

using namespace attention;
using graph::Rotate;

// Options of a model: made, seen and mended.

template <Precision precision, bool sums = false, Precision inputs = Precision::float64>
constexpr BugOption arithmetic{
    [](Model& m) {
      m.arithmetic = {precision, inputs, sums, m.arithmetic.softmax_precision};
    },
    [](const Model& m) {
      return m.arithmetic == Arithmetic{precision, inputs, sums, m.arithmetic.softmax_precision};
    },
    [](Model& m) {
      m.arithmetic = {Precision::float64, Precision::float64, false, m.arithmetic.softmax_precision};
    }};
/// Sets a number of heads that is often used by mistake: twice as many, half of them, or one.
void use_wrong_head_count(Model& m) {
  const std::size_t n = m.n_heads;
  m = with_heads(m, m.d_out() % (2 * n) == 0 ? 2 * n : n % 2 == 0 ? n / 2 : 1);
}

// Features that bugs concern.

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
// Edits of the graph.

template <ProjectionName part>
void transpose_weight(Editing& e, const BugCase&, ProjectionName) {
  const arma::mat weight = e.weight(part);
  if (!weight.is_square() || weight.is_symmetric()) return;
  e.change<graph::Project>(graph::linear_stage(part),
                           [](graph::Project& own) { own.inputs[1].cells = "j:"; });
}
void leave_bias_out(Editing& e, const BugCase&, ProjectionName part) {
  if (!e.bias(part).is_empty()) e.set_bias(part, {});
}
/// Whether the biases of queries, keys and values are all that there are, and counted 0 times.
bool are_all_biases_but_output(const Editing& before, const Numbers& x) {
  return x[0] == 0 && before.bias(ProjectionName::output).is_empty();
}

void lay_out(Editing& e, Stage stage, const graph::HeadLayout& layout) {
  const auto* split = e.get<graph::SplitHeads>(stage);
  if (split && split->inputs[0].layout != &layout)
    e.change<graph::SplitHeads>(stage, [&](graph::SplitHeads& own) { own.inputs[0].layout = &layout; });
}
void interleave_combined(Editing& e, const BugCase&, ProjectionName) {
  e.change_all<graph::CombineHeads>(
      [](const auto& own) { return own.inputs[0].layout == &graph::contiguous; },
      [](auto& own) { own.inputs[0].layout = &graph::interleaved; });
}
/// Form "throughout": also when the heads are combined.
void interleave(Editing& e, const BugCase& c, ProjectionName part) {
  if (e.model().n_heads == 1 || e.model().d_head() == 1) return;
  for (const Stage stage : {Stage::queries, Stage::keys, Stage::values})
    lay_out(e, stage, graph::interleaved);
  if (c.form == "throughout") interleave_combined(e, c, part);
}
template <bool queries, bool keys, bool values>
void view_without_transpose(Editing& e, const BugCase&, ProjectionName) {
  const Model& m = e.model();
  const bool many_queries = m.n_heads > 1 && m.n_tokens() > 1, many_keys = m.kv_heads() > 1 && m.n_keys() > 1;
  if ((queries && !many_queries) || ((keys || values) && !many_keys)) return;
  if (queries) lay_out(e, Stage::queries, graph::untransposed);
  if (keys) lay_out(e, Stage::keys, graph::untransposed);
  if (values) lay_out(e, Stage::values, graph::untransposed);
}
void tile_kv_heads(Editing& e, const BugCase&, ProjectionName) {
  for (std::size_t h = 0; h < e.model().n_heads; ++h) e.graph.kv_head[h] = h % e.model().kv_heads();
}

void rotate_values(Editing& e, const BugCase&, ProjectionName) {
  const Model& m = e.model();
  const auto* rotation = e.get<Rotate>(Stage::rotated_keys);
  if (!rotation || m.d_value() != m.d_head() || m.given.find(Stage::values)) return;
  if (const auto* variant = dynamic_cast<const graph::RotationVariant*>(rotation)) {
    graph::RotationVariant same = *variant;
    same.inputs[0].source = Stage::values;
    return e.graph.wrap(Stage::values, std::move(same));
  }
  e.graph.wrap(Stage::values, Rotate(Stage::values, rotation->rotary, position_of_key(m, 0)));
}
void norm_after_rotation(Editing& e, const BugCase&, ProjectionName) {
  if (!e.find(Stage::rotated_queries) || !e.find(Stage::normed_queries)) return;
  e.graph.move_before(Stage::rotated_queries, Stage::normed_queries);
  e.graph.move_before(Stage::rotated_keys, Stage::normed_keys);
  for (graph::Normalize* norm : e.graph.all<graph::Normalize>()) norm->is_after_rotation = true;
}
/// Changes every rotation by a function of it that returns the changed one.
template <class Change>
void change_rotations(Editing& e, Change change) {
  e.change_all<Rotate>([&](const Rotate& own) { return change(own.rotary) != own.rotary; },
                       [&](Rotate& own) { own.rotary = change(own.rotary); });
}
/// Returns whether more than one pair is rotated, each at its own frequency.
bool has_several_pairs(const positions::Rotary& rotary, const Model& m) {
  return positions::rotated_columns(rotary, m.d_head()) > 2;
}
void swap_rotary_pairing(Editing& e, const BugCase&, ProjectionName) {
  change_rotations(e, [&](positions::Rotary r) {
    using positions::Pairs;
    if (has_several_pairs(r, e.model()))
      r.pairs = r.pairs == Pairs::halves ? Pairs::neighbors : Pairs::halves;
    return r;
  });
}
void use_other_base(Editing& e, const BugCase& c, ProjectionName) {
  change_rotations(e, [&](positions::Rotary r) {
    if (has_several_pairs(r, e.model()) && !r.inverse_frequencies)
      r.base = c.numbers.empty() ? 10000 : c.numbers[0];
    return r;
  });
}
/// Whether a base is that of many models: the usual one, of Llama 3, of Qwen and Mixtral, of gpt-oss.
bool is_common_base(const Editing&, const Numbers& x) {
  constexpr std::array bases{10000.0, 500000.0, 1000000.0, 150000.0};
  return std::ranges::find(bases, x[0]) != bases.end();
}
void leave_scaling_out(Editing& e, const BugCase&, ProjectionName) {
  if (!has_rotary(e.model())) return;
  const double base = e.model().additions.positions.rotary->base;  // dynamic scaling raises it
  change_rotations(e, [base](positions::Rotary r) {
    if (!r.inverse_frequencies) r.base = base, r.scaling = {};
    return r;
  });
}
template <int by>
void shift_positions(Editing& e, const BugCase& c, ProjectionName part) {
  e.change<Rotate>(graph::rotated_stage(part), [&](Rotate& rotation) {
    rotation.offset += c.numbers.empty() ? by : static_cast<int>(c.numbers[0]);
  });
}
bool is_one_shift(const Editing&, const Numbers& x) {
  return std::abs(x[0]) == 1;
}
void rotate_backwards(Editing& e, const BugCase&, ProjectionName) {
  for (Rotate* rotation : e.graph.all<Rotate>()) {
    rotation->is_backwards = true;
    rotation->rotary.inverse_frequencies =
        arma::mat(-arma::rowvec(positions::frequencies(rotation->rotary, e.model().d_head())));
  }
}
void rotate_queries_only(Editing& e, const BugCase&, ProjectionName) {
  const auto* rotation = e.get<Rotate>(Stage::rotated_keys);
  if (rotation)
    e.graph.replace(rotation, graph::Copy(rotation->inputs[0].source, "not rotated", "not rotated"));
}

template <ProjectionName part>
bool is_square(const Editing& before, const Numbers&) {
  return before.weight(part).is_square() && before.has_own_weight(part);
}
const std::array offered_projection_rows{
    Bug{.name = "float32_precision",
        .texts = {"float32 arithmetic", "Every stage is rounded to float32, which has 24 binary digits.",
                  "Compare as float32 does, with a tolerance, or compute in float64: .double().",
                  Stage::embeddings},
        .option = arithmetic<Precision::float32>},
    Bug{.name = "tf32_precision",
        .texts =
            {"TF32 products",
             "Both factors of every matrix product are rounded to 11 binary digits (TF32), as graphics cards may do; sums are float32.",
             "Ask for exact products: torch.set_float32_matmul_precision('highest').", Stage::embeddings},
        .option = arithmetic<Precision::float32, false, Precision::tf32>},
    Bug{.name = "half_precision",
        .texts =
            {"float16 arithmetic",
             "Every stage is rounded to float16, which has 11 binary digits and ends at 65504; sums on the way are finer.",
             "Compute in float32, or at least the scores and the softmax.", Stage::embeddings},
        .option = arithmetic<Precision::float16>},
    Bug{.name = "half_precision_sums",
        .texts = {"float16 sums",
                  "Products and sums are rounded to float16 term by term, and so is every stage.",
                  "Add up in float32, as matrix products of float16 can, or compute all in float32.",
                  Stage::embeddings},
        .option = arithmetic<Precision::float16, true>},
    Bug{.name = "bfloat16_precision",
        .texts = {"bfloat16 arithmetic", "Every stage is rounded to bfloat16, which has 8 binary digits.",
                  "Compute in float32, or at least the scores, the softmax and the sums.", Stage::embeddings},
        .option = arithmetic<Precision::bfloat16>},
    Bug{.name = "weight_untransposed:query",
        .texts =
            {"query weight untransposed",
             "The query weight is used as its transpose: a PyTorch Linear keeps out × in and computes x·Wᵀ.",
             "Transpose the query weight, or compute x·Wᵀ with it.", Stage::queries},
        .edit = transpose_weight<ProjectionName::query>,
        .cause = "weight_untransposed:query",
        .is_also = {{{"projection_transposed", "", "q", is_square<ProjectionName::query>}}}},
    Bug{.name = "weight_untransposed:key",
        .texts =
            {"key weight untransposed",
             "The key weight is used as its transpose: a PyTorch Linear keeps out × in and computes x·Wᵀ.",
             "Transpose the key weight, or compute x·Wᵀ with it.", Stage::keys},
        .edit = transpose_weight<ProjectionName::key>,
        .cause = "weight_untransposed:key",
        .is_also = {{{"projection_transposed", "", "k", is_square<ProjectionName::key>}}}},
    Bug{.name = "weight_untransposed:value",
        .texts =
            {"value weight untransposed",
             "The value weight is used as its transpose: a PyTorch Linear keeps out × in and computes x·Wᵀ.",
             "Transpose the value weight, or compute x·Wᵀ with it.", Stage::values},
        .edit = transpose_weight<ProjectionName::value>,
        .cause = "weight_untransposed:value",
        .is_also = {{{"projection_transposed", "", "v", is_square<ProjectionName::value>}}}},
    Bug{.name = "weight_untransposed:output",
        .texts =
            {"output weight untransposed",
             "The output weight is used as its transpose: a PyTorch Linear keeps out × in and computes x·Wᵀ.",
             "Transpose the output weight, or compute x·Wᵀ with it.", Stage::output},
        .edit = transpose_weight<ProjectionName::output>,
        .cause = "weight_untransposed:output",
        .is_also = {{{"projection_transposed", "", "o", is_square<ProjectionName::output>}}}},
    Bug{.name = "bias_missing",
        .texts = {"all biases missing", "No bias is added after the projections.",
                  "Add the biases of all projections.", Stage::queries},
        .edit = leave_bias_out,
        .default_sides = "qkvo",
        .is_also = {{{"projection_bias", "", "qkvo", is_number<0>},
                     {"projection_bias", "", "qkv", are_all_biases_but_output}}}},
    Bug{.name = "bias_missing:query",
        .texts = {"query bias missing", "The bias of the query projection is not added.",
                  "Add the bias of the query projection.", Stage::queries},
        .edit = leave_bias_out,
        .default_sides = "q",
        .is_also = {{{"projection_bias", "", "q", is_number<0>}}}},
    Bug{.name = "bias_missing:key",
        .texts = {"key bias missing", "The bias of the key projection is not added.",
                  "Add the bias of the key projection.", Stage::keys},
        .edit = leave_bias_out,
        .default_sides = "k",
        .is_also = {{{"projection_bias", "", "k", is_number<0>}}}},
    Bug{.name = "bias_missing:value",
        .texts = {"value bias missing", "The bias of the value projection is not added.",
                  "Add the bias of the value projection.", Stage::values},
        .edit = leave_bias_out,
        .default_sides = "v",
        .is_also = {{{"projection_bias", "", "v", is_number<0>}}}},
    Bug{.name = "bias_missing:output",
        .texts = {"output bias missing", "The bias of the output projection is not added.",
                  "Add the bias of the output projection.", Stage::output},
        .edit = leave_bias_out,
        .default_sides = "o",
        .is_also = {{{"projection_bias", "", "o", is_number<0>}}}},
    Bug{.name = "heads_interleaved",
        .texts =
            {"heads interleaved",
             "Head h has columns h, h + n_heads, … instead of adjacent ones: the columns are reshaped to (d_head, n_heads).",
             "Reshape the columns to (n_heads, d_head), in that order.", Stage::queries},
        .edit = interleave,
        .is_also = {{{"head_split", "interleaved", "qkv"}}},
        .words = "the heads are cut and combined interleaved, as [d_head, heads] instead of [heads, d_head]",
        .cases =
            [](const BugContext& c, BugCases& to) {
              if (c.model().n_heads > 1 && c.model().d_head() > 1) to.add({}, "throughout");
            }},
    Bug{.name = "view_without_transpose",
        .texts =
            {"heads viewed without transpose",
             "Queries, keys and values are viewed as (n_heads, n_tokens, d_head) without the transpose, which mixes tokens and heads.",
             "View as (n_tokens, n_heads, d_head), then swap tokens and heads: transpose(1, 2).",
             Stage::queries},
        .edit = view_without_transpose<true, true, true>,
        .is_also = {{{"head_split", "view", "qkv"}}}},
    Bug{.name = "view_without_transpose:query",
        .texts =
            {"queries viewed without transpose",
             "The queries are viewed as (n_heads, n_tokens, d_head) without the transpose, which mixes tokens and heads.",
             "View the queries as (n_tokens, n_heads, d_head), then swap tokens and heads: transpose(1, 2).",
             Stage::queries},
        .edit = view_without_transpose<true, false, false>,
        .is_also = {{{"head_split", "view", "q"}}}},
    Bug{.name = "view_without_transpose:key",
        .texts =
            {"keys viewed without transpose",
             "The keys are viewed as (n_heads, n_tokens, d_head) without the transpose, which mixes tokens and heads.",
             "View the keys as (n_tokens, n_heads, d_head), then swap tokens and heads: transpose(1, 2).",
             Stage::keys},
        .edit = view_without_transpose<false, true, false>,
        .is_also = {{{"head_split", "view", "k"}}}},
    Bug{.name = "view_without_transpose:value",
        .texts =
            {"values viewed without transpose",
             "The values are viewed as (n_heads, n_tokens, d_head) without the transpose, which mixes tokens and heads.",
             "View the values as (n_tokens, n_heads, d_head), then swap tokens and heads: transpose(1, 2).",
             Stage::values},
        .edit = view_without_transpose<false, false, true>,
        .is_also = {{{"head_split", "view", "v"}}}},
    Bug{.name = "n_heads_other",
        .texts = {"wrong number of heads", "The columns are split into a different number of heads.",
                  "Split into as many heads as the model has.", Stage::queries},
        .option = {use_wrong_head_count},
        .is_also = {{{"heads_other"}}}},
    Bug{.name = "groups_tiled",
        .texts =
            {"KV heads tiled",
             "Keys and values are repeated as a whole, so that head h uses KV head h mod n_kv_heads.",
             "Repeat each KV head in place: repeat_interleave(n_heads // n_kv_heads, dim=1), not repeat().",
             Stage::keys, has_kv_heads},
        .edit = tile_kv_heads,
        .is_also = {{{"kv_heads", "tiled", "kv"}, {"kv_heads_repeated", "tiled", "kv"}}}},
    Bug{.name = "rotary_on_values",
        .texts = {"values rotated", "RoPE is applied to the values, too.",
                  "Apply RoPE to queries and keys only.", Stage::values, has_rotary},
        .edit = rotate_values,
        .words = "the values are rotated too",
        .fits = [](const Editing& e) { return rotates(e) && e.model().d_value() == e.model().d_head(); }},
    Bug{.name = "norm_missing",
        .texts = {"QK norm missing", "Queries and keys are not normalized.",
                  "Normalize each head's queries and keys: q_norm, k_norm.", Stage::normed_queries, has_norm},
        .edit = [](Editing& e, const BugCase&,
                   ProjectionName) { e.leave_out(Stage::normed_queries), e.leave_out(Stage::normed_keys); },
        .is_also = {{{"norm", "missing", "qk"}}}},
    Bug{.name = "norm_after_rotation",
        .texts = {"QK norm after RoPE", "Queries and keys are normalized after RoPE.",
                  "Normalize queries and keys first, then apply RoPE.", Stage::normed_queries, has_norm},
        .edit = norm_after_rotation,
        .words = "the norm comes after the rotation instead of before it",
        .fits =
            [](const Editing& e) { return e.find(Stage::normed_queries) && e.find(Stage::rotated_queries); }},
    Bug{.name = "rotary_missing",
        .texts = {"RoPE missing", "RoPE is applied to neither queries nor keys.",
                  "Apply RoPE to queries and keys before the scores.", Stage::rotated_queries, has_rotary},
        .edit = [](Editing& e, const BugCase&,
                   ProjectionName part) { e.leave_out(graph::rotated_stage(part)); },
        .default_sides = "qk",
        .words = "the {stages} are not rotated",
        .cases =
            [](const BugContext& c, BugCases& to) {
              if (!rotates(c.now)) return;
              for (const char* sides : query_key_sides) to.add({}, "", sides);
            }},
    Bug{.name = "rotary_other_pairs",
        .texts =
            {"wrong RoPE pairs",
             "RoPE pairs the columns differently: halves (p with p + d/2) instead of adjacent ones (2p with 2p + 1), or the other way round.",
             "Use the pairs that the weights were trained with: halves in Hugging Face's Llama, adjacent columns in Meta's.",
             Stage::rotated_queries, has_rotary},
        .edit = swap_rotary_pairing,
        .is_also = {{{"rotary", "other_pairs", "qk"}}}},
    Bug{.name = "rotary_off_by_one",
        .texts = {"query positions one too high",
                  "The RoPE positions of queries, or of keys, are off by one.",
                  "Count the positions of queries and keys from the same 0.", Stage::rotated_queries,
                  has_rotary},
        .edit = shift_positions<1>,
        .default_sides = "q",
        .has_size = true,
        .is_also = {{{"positions", "shift", "q", is_number<1>},
                     {"positions", "shift", "k", is_number<-1>},
                     {"positions", "shift", "qk", is_one_shift}}}},
    Bug{.name = "rotary_off_by_one:earlier",
        .texts = {"query positions one too low", "The RoPE positions of queries, or of keys, are off by one.",
                  "Count the positions of queries and keys from the same 0.", Stage::rotated_queries,
                  has_rotary},
        .edit = shift_positions<-1>,
        .default_sides = "q",
        .has_size = true,
        .is_also = {{{"positions", "shift", "q", is_number<-1>}, {"positions", "shift", "k", is_number<1>}}}},
    Bug{.name = "rotary_base",
        .texts = {"RoPE base 10000",
                  "The RoPE base is not the model's, but another one such as 10000, the most common.",
                  "Use the base of the model: rope_theta in its config.json.", Stage::rotated_queries,
                  has_rotary},
        .edit = use_other_base,
        .is_also = {{{"rotary", "base", "qk", is_common_base}}}},
    Bug{.name = "rotary_scaling_missing",
        .texts = {"RoPE scaling missing", "The RoPE frequencies are not scaled for long texts.",
                  "Scale the frequencies as rope_scaling in config.json says.", Stage::rotated_queries,
                  has_rotary_scaling},
        .edit = leave_scaling_out,
        .is_also = {{{"rotary", "frequencies_unscaled", "qk"}}}},
    Bug{.name = "rotary_backwards",
        .texts = {"RoPE with the opposite sign",
                  "Queries and keys are rotated by the negative angle: the signs of the sines are swapped.",
                  "Rotate by the positive angle: first·cos − second·sin, second·cos + first·sin.",
                  Stage::rotated_queries, has_rotary},
        .edit = rotate_backwards,
        .is_also = {{{"rotary", "backwards", "qk"}}}},
    Bug{.name = "rotary_queries_only",
        .texts = {"RoPE on queries only", "RoPE is applied to the queries but not to the keys.",
                  "Apply RoPE to the keys as well, each at its own position.", Stage::rotated_keys,
                  has_rotary},
        .edit = rotate_queries_only,
        .is_also = {{{"rotary_missing", "", "k"}}}},
    Bug{.name = "heads_interleaved:combined",
        .is_form = true,
        .texts = {"heads interleaved when combined",
                  "Column k of head h goes to column k · n_heads + h: combined as (d_head, n_heads).",
                  "Concatenate the context vectors of the heads, in that order.", Stage::concatenated},
        .edit = interleave_combined,
        .is_also = {{{"merge", "interleaved"}}}}};

}  // namespace

std::span<const Bug> offered_projection_bugs() {
  return offered_projection_rows;
}

}  // namespace core::bugs
