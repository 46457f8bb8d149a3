#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "core/graph/bugs.hpp"
#include "core/graph/model_changes.hpp"

/// Bugs that can be injected: of scores, masks, softmax, dropout and output.
namespace core::bugs {
namespace {

using namespace attention;
using graph::digits;
using graph::Softmax;

// Options of a model: made, seen and mended.

template <Precision precision>
constexpr BugOption softmax_arithmetic{
    [](Model& m) { m.arithmetic.softmax_precision = precision; },
    [](const Model& m) { return m.arithmetic.softmax_precision == precision; },
    [](Model& m) { m.arithmetic.softmax_precision = Precision::float64; }};

template <ScaleRule rule>
constexpr BugOption scale_rule{[](Model& m) {
                                 m = with_scale(m, {rule, 1});
                               },
                               [](const Model& m) { return m.scale.rule == rule; },
                               [](Model& m) { m = with_scale(m, {}); }};
Scale by_d_head(const Model& m) {
  return {ScaleRule::factor, 1 / static_cast<double>(m.d_head())};
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
constexpr BugOption finite_fill{
    [](Model& m) {
      if (m.mask.masks_keys())
        m.mask.method = MaskMethod::large_negative, m.mask.large_negative = fill<power>;
    },
    [](const Model& m) {
      return m.mask.method == MaskMethod::large_negative && m.mask.large_negative == fill<power>;
    },
    [](Model& m) {
      m.mask.method = MaskMethod::negative_infinity, m.mask.large_negative = Mask().large_negative;
    }};
/// Whether masked scores become a large negative number, other than −10⁴.
bool is_large_fill(const Editing&, const Numbers& x) {
  return x[0] <= -100 && x[0] != fill<4>;
}
template <bool training>
void train(Model& m) {
  if (m.dropout.rate > 0) m.dropout.training = training;
}
template <CombineRule rule>
void combine_by(Model& m) {
  if (m.n_heads > 1) m.merge = rule;
}

// The mask.

void unmask_padding(Mask& mask, const Model& m, const Numbers&) {
  Model masked = m;
  masked.mask = mask, masked.bugs.clear();
  mask = with_padding_unmasked(masked).mask;
}
/// Whether single cells of the mask are there for padding keys alone.
bool have_cells_padding_alone(const Editing& before, const Numbers&) {
  Mask without = mask_of(before), unpadded = without;
  without.cells.clear();
  unmask_padding(unpadded, before.model(), {});
  return unpadded == without;
}
void mask_one_key(Mask& mask, const Model& m, const Numbers& x) {
  Model masked = m;
  masked.mask = mask;
  const double key = x.empty() ? static_cast<double>(m.n_keys() / 2) : x[0];
  if (key >= 0) mask = with_key_masked(masked, static_cast<std::size_t>(key)).mask;
}
void change_mask(Editing& e, const BugCase& c, ProjectionName) {
  e.change_mask([&](Mask& mask) { c.bug->change_mask(mask, e.model(), c.numbers); });
}
/// Whether a window differs from the graph's by some keys on the left.
template <int more>
bool is_wider(const Editing& before, const Numbers& x) {
  const MaskWindow& own = mask_of(before).window;
  return own.left && x[0] == width_or_none(own.left) + more && x[1] == width_or_none(own.right);
}

// Features that bugs concern.

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

// Edits of the graph.

/// Replaces every softmax over the keys of a row.
template <class Make>
void replace_softmax(Editing& e, Make make) {
  for (graph::Node& node : e.graph.nodes) {
    const auto* own = dynamic_cast<const Softmax*>(node.operation.get());
    if (own && own->inputs[0].is_row_wise()) node.operation = graph::SharedOperation(make(*own));
  }
}

void swap_queries_and_keys(Editing& e, const BugCase&, ProjectionName) {
  if (e.model().n_tokens() != e.model().n_keys()) return;
  e.change<graph::DotProducts>(Stage::scores, [](graph::DotProducts& products) {
    products.is_swapped = true;
    std::swap(products.inputs[0].source, products.inputs[1].source);
  });
}
/// Returns the factor of the scores, 1 if they are not scaled.
double scale_of(const Editing& e) {
  const auto* scale = e.get<graph::ScaleScores>(Stage::scaled_scores);
  return scale ? scale->factor : 1;
}
void scale_twice(Editing& e, const BugCase&, ProjectionName) {
  if (scale_of(e) != 1)
    e.change<graph::DotProducts>(
        Stage::scores, [scale = scale_of(e)](graph::DotProducts& products) { products.pre_scale = scale; });
}
bool equals(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::abs(b);
}
bool has_no_scale(const Editing&, const Numbers& x) {
  return equals(x[0], 1);
}
bool has_scale_of_width(const Editing& before, const Numbers& x) {
  const Model& m = before.model();
  return (m.d_model() > 0 && equals(x[0], 1 / std::sqrt(static_cast<double>(m.d_model())))) ||
         equals(x[0], 1 / std::sqrt(static_cast<double>(m.d_out())));
}
bool has_scale_of_d_head(const Editing& before, const Numbers& x) {
  return equals(x[0], by_d_head(before.model()).factor);
}
bool has_scale_twice(const Editing& before, const Numbers& x) {
  return equals(x[0], scale_of(before) * scale_of(before));
}
template <Stage stage>
void move_before_scale(Editing& e, const BugCase&, ProjectionName) {
  if (e.find(stage) && scale_of(e) != 1) e.graph.move_before(stage, Stage::scaled_scores);
}

void leave_score_bias_out(Editing& e, const graph::Source& bias) {
  const auto is_bias = [&](const graph::Input& input) { return input.source == bias; };
  const auto* sum = e.get<graph::AddBiases>(Stage::biased_scores);
  if (!sum || std::ranges::none_of(sum->inputs, is_bias)) return;
  if (sum->inputs.size() == 2)
    e.leave_out(Stage::biased_scores);
  else
    e.change<graph::AddBiases>(Stage::biased_scores, [&](auto& own) { std::erase_if(own.inputs, is_bias); });
  std::erase_if(e.graph.nodes, [&](const graph::Node& node) { return graph::Source(node.stage) == bias; });
}
void leave_sink_out(Editing& e, const BugCase&, ProjectionName) {
  e.change_all<Softmax>([](const Softmax& own) { return own.inputs.size() > 1; },
                        [](Softmax& own) { own.inputs.resize(1); });
}

double block_size(const Model& m, const BugCase& c) {
  return c.numbers.empty() || c.numbers[0] <= 0 ? static_cast<double>(default_block_size(m)) : c.numbers[0];
}
template <BlockRule rule>
void take_blocks(Editing& e, const BugCase& c, ProjectionName) {
  const Blocks blocks{rule, static_cast<std::size_t>(block_size(e.model(), c))};
  if (blocks.size < e.model().n_keys())
    replace_softmax(e, [&](const Softmax& own) { return graph::SoftmaxInBlocks(own, blocks); });
}
std::vector<std::size_t> block_sizes(const Model& m) {
  constexpr std::size_t every_size = 16;  // above it, only common sizes
  std::vector<std::size_t> sizes;
  for (std::size_t size = 1; size < m.n_keys(); ++size)
    if (size <= every_size || size % (size > 128 ? 64 : 16) == 0) sizes.push_back(size);
  return sizes;
}
void try_blocks(const BugContext& c, BugCases& to) {
  for (const std::size_t size : block_sizes(c.model())) to.add({static_cast<double>(size)});
}
/// Tries sizes that drop different keys; of those that drop the same, one that leaves an incomplete block,
/// and the least power of two.
void try_last_blocks(const BugContext& c, BugCases& to) {
  const std::size_t n_keys = c.model().n_keys();
  std::map<std::size_t, std::size_t> by_first_dropped;
  const auto likelihood = [&](std::size_t size) {
    return std::pair(n_keys % size != 0, std::has_single_bit(size));
  };
  for (const std::size_t size : block_sizes(c.model())) {
    std::size_t& chosen = by_first_dropped.emplace((n_keys - 1) / size * size, size).first->second;
    if (likelihood(size) > likelihood(chosen)) chosen = size;
  }
  for (const auto& [first, size] : by_first_dropped)
    if (first > 0) to.add({static_cast<double>(size)});
}
std::string blocks_words(const char* words, const Editing& before, const BugCase& c) {
  return fmt::format("{} (blocks of {})", words, digits(block_size(before.model(), c)));
}
std::string last_block_words(const Editing& before, const BugCase& c) {
  const auto size = static_cast<std::size_t>(block_size(before.model(), c));
  return fmt::format("the last block of keys is dropped: keys from {} on, as with blocks of {}",
                     (before.model().n_keys() - 1) / size * size, size);
}

void leave_output_projection_out(Editing& e, const BugCase&, ProjectionName) {
  if (const auto* linear = e.get<graph::Project>(Stage::output))
    e.graph.replace(linear, graph::Unprojected(Stage::concatenated));
}

bool masks_only_by_causality(const Editing& before, const Numbers&) {
  return mask_of(before).is_only_causal();
}
template <MaskAlignment align>
bool is_aligned(const Editing& before, const Numbers&) {
  return mask_of(before).align == align;
}
/// Tries every key of a short text but the last, which a dropped block explains, too.
void try_missing_keys(const BugContext& c, BugCases& to) {
  constexpr std::size_t max_keys = 64;
  const std::size_t n = c.model().n_keys();
  for (std::size_t key = 0; key + 1 < n && n <= max_keys; ++key) to.add({static_cast<double>(key)});
}

const std::array offered_score_rows{
    Bug{.name = "query_key_swapped",
        .texts = {"queries and keys swapped", "Queries and keys are swapped, so the scores are transposed.",
                  "Multiply the queries by the transposed keys: Q·Kᵀ.", Stage::queries},
        .edit = swap_queries_and_keys,
        .is_also = {{{"scores_from:transposed"}}}},
    Bug{.name = "no_scale",
        .texts = {"no scale", "The scores are not divided by √d_head.",
                  "Divide the scores by √d_head before mask and softmax.", Stage::scaled_scores},
        .option = scale_rule<ScaleRule::none>,
        .is_also = {{{"scale", "", "", has_no_scale}}}},
    Bug{.name = "scale_sqrt_d_model",
        .texts = {"scaled by √d_model",
                  "The scores are divided by √d_model, the width of all heads together.",
                  "Divide by √d_head, the width of one head.", Stage::scaled_scores},
        .option = scale_rule<ScaleRule::inverse_sqrt_d_model>,
        .is_also = {{{"scale", "", "", has_scale_of_width}}}},
    Bug{.name = "scale_d_head",
        .texts = {"scaled by d_head", "The scores are divided by d_head itself.",
                  "Take the square root: divide by √d_head.", Stage::scaled_scores},
        .option = {[](Model& m) { m = with_scale(m, by_d_head(m)); },
                   [](const Model& m) { return m.scale == by_d_head(m); },
                   [](Model& m) { m = with_scale(m, {}); }},
        .is_also = {{{"scale", "", "", has_scale_of_d_head}}}},
    Bug{.name = "scale_twice",
        .texts = {"scaled twice", "The scale is applied to the queries and again to the scores.",
                  "Scale once: scaled_dot_product_attention() does it itself.", Stage::scores},
        .edit = scale_twice,
        .is_also = {{{"scale", "", "", has_scale_twice}, {"scale_early:again"}}},
        .words = "the scale is applied to the products of queries and keys and to the scores again",
        .fits = [](const Editing& e) { return scale_of(e) != 1; }},
    Bug{.name = "cap_before_scale",
        .texts = {"soft-capping before scaling", "The scores are soft-capped before they are scaled.",
                  "Scale the scores first, then apply soft-capping: c·tanh(s/c).", Stage::scaled_scores,
                  has_cap},
        .edit = move_before_scale<Stage::capped_scores>,
        .is_also = {{{"order", "cap first"}}}},
    Bug{.name = "bias_before_scale",
        .texts = {"attention bias before scaling",
                  "The attention bias is added before scaling, so that it is scaled as well.",
                  "Add the attention bias to the scaled scores.", Stage::scaled_scores, has_bias},
        .edit = move_before_scale<Stage::biased_scores>,
        .is_also = {{{"order", "bias first"}}}},
    Bug{.name = "cap_missing",
        .texts = {"soft-capping missing", "The scores are not soft-capped.",
                  "Apply soft-capping to the scaled scores, before the mask: c·tanh(s/c).",
                  Stage::capped_scores, has_cap},
        .edit = [](Editing& e, const BugCase&, ProjectionName) { e.leave_out(Stage::capped_scores); },
        .words = "the softcap is missing (no logit soft-capping: the cap is missing)",
        .fits = [](const Editing& e) { return e.get<graph::Softcap>(Stage::capped_scores) != nullptr; }},
    Bug{.name = "bias_missing:positions",
        .texts = {"position bias missing", "The relative position bias is not added to the scores.",
                  "Add the position bias to the scaled scores.", Stage::position_bias, has_bias},
        .edit = [](Editing& e, const BugCase&,
                   ProjectionName) { leave_score_bias_out(e, Stage::position_bias); },
        .is_also = {{{"bias_count", "positions", "", is_number<0>}}}},
    Bug{.name = "alibi_slopes_reversed",
        .texts = {"ALiBi slopes reversed",
                  "The ALiBi slopes are in reverse order: the first head has the slope of the last.",
                  "Give head 0 the first slope: 2^(−8/n_heads) where n_heads is a power of two.",
                  Stage::position_bias, has_slopes},
        .option = {reverse_slopes, has_slopes_reversed, reverse_slopes},
        .is_also = {{{"alibi", "reversed"}}}},
    Bug{.name = "bias_missing:scores",
        .texts = {"attention bias missing", "The attention bias is not added to the scores.",
                  "Add the attention bias to the scaled scores.", Stage::biased_scores, has_bias},
        .edit = [](Editing& e, const BugCase&,
                   ProjectionName) { leave_score_bias_out(e, MatrixName::score_bias); },
        .is_also = {{{"bias_count", "given", "", is_number<0>}}}},
    Bug{.name = "no_mask",
        .texts = {"no mask", "Every query attends to every key, later ones included.",
                  "Mask the scores before the softmax.", Stage::mask},
        .option = {[](Model& m) { m.mask = m.mask.with_nothing_masked(); },
                   [](const Model& m) { return !m.mask.masks_keys(); }, mask_causally},
        .is_also = {{{"mask", "causal_missing", "", masks_only_by_causality}, {"mask", "missing"}}}},
    Bug{.name = "causal_unwanted",
        .texts = {"causal mask unwanted",
                  "A causal mask is applied, although every query may attend to later keys.",
                  "Leave the causal mask out: is_causal=False.", Stage::mask},
        .option = {mask_causally, nullptr, [](Model& m) { m.mask.causal = false; }},
        .is_also = {{{"mask", "causal_added"}, {"mask", "causal_added_otherwise"}}}},
    Bug{.name = "padding_missing",
        .texts = {"padding mask missing", "Padding keys are not masked.",
                  "Mask padding keys before the softmax: masked_fill(is_padding, float('-inf')).",
                  Stage::mask},
        .change_mask = unmask_padding,
        .edit = change_mask,
        .is_also = {{{"mask", "padding_missing"}, {"mask", "cells_missing", "", have_cells_padding_alone}}}},
    Bug{.name = "key_missing",
        .texts = {"a key missing",
                  "One key is masked for every query, for example by a loop or a cache that skips it.",
                  "Unmask the key for the queries that may attend to it.", Stage::mask},
        .change_mask = mask_one_key,
        .edit = change_mask,
        .words =
            [](const Editing& before, const BugCase& c) {
              return "key " +
                     digits(c.numbers.empty() ? static_cast<double>(before.model().n_keys() / 2)
                                              : c.numbers[0]) +
                     " is masked for every query";
            },
        .cases = try_missing_keys,
        .in_pairs = false},
    Bug{.name = "mask_aligned_first",
        .texts =
            {"mask from the first key on",
             "The causal mask aligns the queries with the first keys instead of the last: tril() of a matrix that is not square, or is_causal=True.",
             "Shift the diagonal by n_keys − n_queries.", Stage::mask},
        .option = {align_mask<MaskAlignment::first>,
                   [](const Model& m) { return m.mask.align == MaskAlignment::first; },
                   align_mask<MaskAlignment::last>},
        .is_also = {{{"mask", "aligned_otherwise", "", is_aligned<MaskAlignment::last>}}}},
    Bug{.name = "mask_aligned_last",
        .texts = {"mask up to the last key",
                  "The causal mask aligns the queries with the last keys instead of the first.",
                  "Align the mask with the first key: tril(), or is_causal=True.", Stage::mask},
        .option = {align_mask<MaskAlignment::last>, nullptr, align_mask<MaskAlignment::first>},
        .is_also = {{{"mask", "aligned_otherwise", "", is_aligned<MaskAlignment::first>}}}},
    Bug{.name = "mask_transposed",
        .texts = {"mask transposed",
                  "The mask is transposed: queries attend to later tokens instead of earlier ones.",
                  "Mask the positions above the diagonal: triu(diagonal=1), or keep tril().", Stage::mask},
        .option = {transpose_mask, [](const Model& m) { return m.mask.edge.transposed; }, transpose_mask},
        .is_also = {{{"mask", "causal_transposed"}}}},
    Bug{.name = "mask_hides_diagonal",
        .texts = {"diagonal masked", "No query attends to its own key: the diagonal is masked as well.",
                  "Mask from the next diagonal on: triu(diagonal=1), not triu().", Stage::mask},
        .option = {move_edge<-1>, [](const Model& m) { return m.mask.edge.diagonal < 0; }, move_edge<0>},
        .is_also = {{{"mask", "edge_moved", "", is_number<-1>}}}},
    Bug{.name = "mask_shows_next",
        .texts = {"next token unmasked",
                  "Each query also attends to the next token: the mask starts one diagonal too late.",
                  "Mask from the previous diagonal on: triu(diagonal=1), not triu(diagonal=2).", Stage::mask},
        .option = {move_edge<1>, [](const Model& m) { return m.mask.edge.diagonal > 0; }, move_edge<0>},
        .is_also = {{{"mask", "edge_moved", "", is_number<1>}}}},
    Bug{.name = "window_missing",
        .texts = {"sliding window missing",
                  "The sliding window is missing: queries attend to keys at any distance.",
                  "Mask keys beyond the sliding window.", Stage::mask},
        .change_mask = [](Mask& mask, const Model&, const Numbers&) { mask.window = {}; },
        .edit = change_mask,
        .is_also = {{{"mask", "window_missing"}}}},
    Bug{.name = "window_off_by_one",
        .texts =
            {"sliding window one key too wide",
             "The sliding window contains one key too many on the left: it does not count the query itself.",
             "Attend to keys from position − left up to the query's own.", Stage::mask},
        .change_mask =
            [](Mask& mask, const Model&, const Numbers&) {
              if (mask.window.left) ++*mask.window.left;
            },
        .edit = change_mask,
        .is_also = {{{"mask", "other_window", "", is_wider<1>}}}},
    Bug{.name = "window_off_by_one:fewer",
        .texts = {"sliding window one key too narrow",
                  "The sliding window contains one key too few on the left: it counts the query itself.",
                  "Attend to keys from position − left up to the query's own.", Stage::mask},
        .change_mask =
            [](Mask& mask, const Model&, const Numbers&) {
              if (mask.window.left && *mask.window.left > 0) --*mask.window.left;
            },
        .edit = change_mask,
        .is_also = {{{"mask", "other_window", "", is_wider<-1>}}}},
    Bug{.name = "documents_missing",
        .texts = {"document mask missing",
                  "Packed documents are not separated: queries attend to keys of earlier documents.",
                  "Mask keys of other documents.", Stage::mask},
        .change_mask = [](Mask& mask, const Model&, const Numbers&) { mask.documents.clear(); },
        .edit = change_mask,
        .is_also = {{{"mask", "documents_missing"}}}},
    Bug{.name = "mask_after_softmax",
        .texts = {"mask after the softmax",
                  "Masked weights become 0 only after the softmax, so that rows sum to less than 1.",
                  "Mask the scores with −∞ before the softmax, or divide each row by its sum.",
                  Stage::masked_scores},
        .option = {mask_by<MaskMethod::zero_after_softmax>,
                   [](const Model& m) { return m.mask.method == MaskMethod::zero_after_softmax; },
                   mask_by<MaskMethod::negative_infinity>},
        .is_also = {{{"mask_method", "zero"}}}},
    Bug{.name = "mask_finite",
        .texts = {"mask with −10⁹",
                  "Masked scores become a large negative number such as −10⁹ instead of −∞.",
                  "Use −∞: float('-inf').", Stage::masked_scores},
        .option = finite_fill<9>,
        .is_also = {{{"mask_value", "value", "", is_large_fill},
                     {"mask_value_fitted", "value", "", is_large_fill}}}},
    Bug{.name = "mask_finite:1e4",
        .texts = {"mask with −10⁴",
                  "Masked scores become a large negative number such as −10⁴ instead of −∞.",
                  "Use −∞: float('-inf').", Stage::masked_scores},
        .option = finite_fill<4>,
        .is_also = {{{"mask_value", "value", "", is_number<-10000>}}}},
    Bug{.name = "softmax_over_queries",
        .texts = {"softmax over queries",
                  "The softmax runs over the other axis: columns sum to 1, rows do not.",
                  "Run the softmax over the keys: dim=-1.", Stage::unmasked_weights},
        .edit =
            [](Editing& e, const BugCase&, ProjectionName) {
              replace_softmax(e, [](const Softmax& own) { return graph::SoftmaxOverQueries(own); });
            },
        .is_also = {{{"softmax_form", "over_queries"}}}},
    Bug{.name = "sink_missing",
        .texts = {"attention sink missing",
                  "exp(sink) is not added to the softmax sum, so that each row sums to 1.",
                  "Append the sink to the scores of each row, run the softmax, and drop its column.",
                  Stage::unmasked_weights, has_sink},
        .edit = leave_sink_out,
        .is_also = {{{"sinks:term", "missing"}}}},
    Bug{.name = "blocks_not_rescaled",
        .texts =
            {"softmax blocks not rescaled",
             "A blockwise softmax does not multiply its running sum by exp(m_old − m_new) when the maximum grows.",
             "Multiply the running sum and the running context vectors by exp(m_old − m_new) in every block.",
             Stage::unmasked_weights},
        .edit = take_blocks<BlockRule::not_rescaled>,
        .has_size = true,
        .words =
            [](const Editing& before, const BugCase& c) {
              return blocks_words("the online softmax does not rescale earlier blocks", before, c);
            },
        .cases = try_blocks},
    Bug{.name = "last_block_dropped",
        .texts = {"last block of keys skipped",
                  "The keys are processed in blocks, and the last block is skipped.",
                  "Round the number of blocks up: (n_keys + size - 1) // size.", Stage::unmasked_weights},
        .edit = take_blocks<BlockRule::last_dropped>,
        .has_size = true,
        .words = last_block_words,
        .cases = try_last_blocks,
        .in_pairs = false},
    Bug{.name = "softmax_half_precision",
        .texts = {"float16 softmax",
                  "Only the softmax is computed in float16: its inputs and outputs are rounded.",
                  "Compute the softmax in float32: softmax(scores, dim=-1, dtype=torch.float32).",
                  Stage::unmasked_weights},
        .option = softmax_arithmetic<Precision::float16>},
    Bug{.name = "softmax_bfloat16_precision",
        .texts = {"bfloat16 softmax",
                  "Only the softmax is computed in bfloat16: its inputs and outputs are rounded.",
                  "Compute the softmax in float32: softmax(scores, dim=-1, dtype=torch.float32).",
                  Stage::unmasked_weights},
        .option = softmax_arithmetic<Precision::bfloat16>},
    Bug{.name = "dropout_before_softmax",
        .texts = {"dropout before the softmax",
                  "Dropout is applied to the scores: a dropped score is 0, which does not remove the key.",
                  "Apply dropout to the weights, after the softmax.", Stage::masked_scores},
        .option = {[](Model& m) {
                     if (m.dropout.active()) m.dropout.place = DropoutPlace::scaled_scores;
                   },
                   [](const Model& m) { return m.dropout.place != DropoutPlace::weights; },
                   [](Model& m) { m.dropout.place = DropoutPlace::weights; }},
        .edit =
            [](Editing& e, const BugCase& c, ProjectionName) {
              graph::drop_scores(
                  e.graph,
                  c.form == "after the mask" ? DropoutPlace::masked_scores : DropoutPlace::scaled_scores,
                  true);
            },
        .words =
            [](const Editing&, const BugCase& c) {
              return "dropout is applied to the scores " +
                     (c.form.empty() ? std::string("before the mask") : c.form) + " instead of the weights";
            },
        .cases =
            [](const BugContext& c, BugCases& to) {
              if (!c.model().dropout.active()) return;
              to.add(), to.add({}, "after the mask");
            }},
    Bug{.name = "dropout_unscaled",
        .texts = {"dropout not rescaled", "Kept weights are not multiplied by 1/(1 − p).",
                  "Multiply the kept weights by 1/(1 − p).", Stage::masked_scores},
        .option = {[](Model& m) {
                     if (m.dropout.active()) m.dropout.rescale = false;
                   },
                   [](const Model& m) { return !m.dropout.rescale; },
                   [](Model& m) { m.dropout.rescale = true; }},
        .is_also = {{{"dropout_form", "not_rescaled"}}}},
    Bug{.name = "dropout_off",
        .texts = {"dropout off", "Nothing is dropped, as in evaluation mode.",
                  "Turn dropout on: model.train().", Stage::masked_scores},
        .option = {train<false>, [](const Model& m) { return m.dropout.rate > 0 && !m.dropout.training; },
                   train<true>},
        .is_also = {{{"dropout_form", "missing"}}}},
    Bug{.name = "merge_without_transpose",
        .texts =
            {"heads combined without transpose",
             "The heads are reshaped into one matrix without the transpose, which mixes tokens and heads.",
             "Transpose heads and tokens first: contexts.transpose(1, 2).reshape(…).", Stage::concatenated},
        .option = {combine_by<CombineRule::reshape_without_transpose>,
                   [](const Model& m) { return m.merge == CombineRule::reshape_without_transpose; },
                   combine_by<CombineRule::concatenate>},
        .is_also = {{{"merge", "reshape"}}}},
    Bug{.name = "output_projection_missing",
        .texts = {"output projection missing",
                  "The result is the concatenated heads, without the output projection.",
                  "Multiply the concatenated heads by the output projection.", Stage::output},
        .edit = leave_output_projection_out,
        .is_also = {{{"output_form", "missing"}}}},
    Bug{.name = "blocks_not_rescaled:sum",
        .is_form = true,
        .texts =
            {"softmax blocks: sum not rescaled",
             "A softmax that takes the keys block by block does not multiply its sum by exp(m_old − m_new) when the maximum grows.",
             "Multiply the running sum by exp(m_old − m_new) in every block.", Stage::unmasked_weights},
        .edit = take_blocks<BlockRule::sum_not_rescaled>,
        .has_size = true,
        .words =
            [](const Editing& before, const BugCase& c) {
              return blocks_words("the online softmax does not rescale its sum", before, c);
            },
        .cases = try_blocks,
        .in_pairs = false},
    Bug{.name = "blocks_not_rescaled:contexts",
        .is_form = true,
        .texts =
            {"softmax blocks: context vectors not rescaled",
             "A softmax that takes the keys block by block does not multiply its context vectors by exp(m_old − m_new) when the maximum grows.",
             "Multiply the running context vectors by exp(m_old − m_new) in every block.",
             Stage::unmasked_weights},
        .edit = take_blocks<BlockRule::contexts_not_rescaled>,
        .has_size = true,
        .words =
            [](const Editing& before, const BugCase& c) {
              return blocks_words("the online softmax does not rescale its context vectors", before, c);
            },
        .cases = try_blocks,
        .in_pairs = false}};

}  // namespace

std::span<const Bug> offered_score_bugs() {
  return offered_score_rows;
}

}  // namespace core::bugs
