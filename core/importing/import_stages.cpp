#include "core/importing/import_stages.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>

#include "core/base/error.hpp"
#include "core/base/find.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/base/words.hpp"
#include "core/files/families.hpp"
#include "core/files/stage_names.hpp"
#include "core/graph/given.hpp"
#include "core/graph/given_model.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/validation.hpp"
#include "core/graph/visible.hpp"

namespace core::importing {
namespace {

using attention::GivenStage;
using attention::Stage;
using formats::Tensor;
using formats::TensorFile;
using formats::TensorInfo;
using formats::TensorShape;

constexpr double rounding_of_a_row = 0.02;    // of float16 and bfloat16, summed
constexpr double rounding_of_a_score = 0.02;  // of float16, relative to the largest score
constexpr double masked_score = -1e4;         // finite numbers that replace −inf are at most this
constexpr double same_factor = 0.01;          // relative

/// A layer along a first axis that counts layers; n is 0 if there is no such axis.
struct LayerIndex {
  std::size_t index = 0, n = 0;
};

/// A stage that can be given, by its name, and its layer and head.
struct GivableStage {
  Stage stage = Stage::weights;
  std::string layer;
  std::optional<std::size_t> head;
};

std::optional<Stage> givable(const std::string& base) {
  for (const Stage stage : formats::meaning_of(base).stages)
    if (attention::can_be_given(stage)) return stage;
  return std::nullopt;
}

std::optional<GivableStage> stage_by_name(const std::string& name) {
  const formats::NameParts parts = formats::split_name(name);
  if (parts.sequence) return std::nullopt;
  if (const auto stage = givable(parts.base)) {
    const auto [owner, last] = owner_and_last(parts.base);
    return GivableStage{*stage, owner, parts.head};
  }
  for (const auto& [base, number, is_separate, suffix] : formats::split_numbers(name))
    if (const auto stage = givable(base)) return GivableStage{*stage, number, {}};
  return std::nullopt;
}

bool can_be_a_stage(const TensorInfo& info) {
  return info.dtype != formats::Dtype::text && info.shape.size() >= 2 && info.shape.size() <= 5 &&
         std::ranges::all_of(info.shape, [](std::size_t n) { return n > 0; });
}

/// Returns whether all rows sum to 1, ignoring rows of zeros, such as padding, unless all rows are zero.
bool sums_to_one(const Tensor& tensor) {
  const std::size_t n = tensor.shape.back();
  bool has_nonzero_row = false;
  for (std::size_t at = 0; at < tensor.numbers.size(); at += n) {
    const double sum = std::accumulate(tensor.numbers.begin() + static_cast<std::ptrdiff_t>(at),
                                       tensor.numbers.begin() + static_cast<std::ptrdiff_t>(at + n), 0.0);
    if (sum != 0 && !(std::abs(sum - 1) <= rounding_of_a_row)) return false;
    has_nonzero_row = has_nonzero_row || sum != 0;
  }
  return has_nonzero_row;
}

bool holds_weights(const TensorFile& file, const TensorInfo& info, const core::StopToken& progress) {
  const Tensor first = file.read(info.name, TensorShape(info.shape.size() - 2, 0), progress);
  return sums_to_one(first) && std::ranges::all_of(first.numbers, [](double number) {
           return number >= 0 && number <= 1 + rounding_of_a_row;
         });
}

/// Returns weights under meaningless names, one tensor per layer: "arr_0", "arr_1", …
std::vector<StageLayer> nameless_weights(const TensorFile& file, const core::StopToken& progress) {
  std::vector<const TensorInfo*> tensors;
  for (const TensorInfo& info : file.tensors())
    if (info.dtype != formats::Dtype::text) tensors.push_back(&info);
  const bool alike = !tensors.empty() && std::ranges::all_of(tensors, [&](const TensorInfo* info) {
    return can_be_a_stage(*info) && info->shape.size() > 2 && info->shape == tensors.front()->shape &&
           std::max(info->shape.end()[-2], info->shape.back()) <= attention::max_tokens;
  });
  if (!alike || !holds_weights(file, *tensors.front(), progress)) return {};
  std::vector<StageLayer> layers;
  for (const TensorInfo* info : tensors) layers.push_back({info->name, {{Stage::weights, {info->name}}}});
  std::ranges::stable_sort(layers, text::natural_less, &StageLayer::name);
  return layers;
}

/// Returns the numbers in another order of axes: axis k of the result is axis order[k] of the tensor.
Tensor permute(Tensor tensor, const TensorShape& order) {
  const std::size_t n_axes = order.size();
  TensorShape strides(n_axes, 1), shape(n_axes), steps(n_axes), at(n_axes, 0);
  for (std::size_t k = n_axes - 1; k-- > 0;) strides[k] = strides[k + 1] * tensor.shape[k + 1];
  for (std::size_t k = 0; k < n_axes; ++k) {
    shape[k] = tensor.shape[order[k]];
    steps[k] = strides[order[k]];
  }
  std::vector<double> numbers;
  numbers.reserve(tensor.numbers.size());
  std::size_t from = 0;
  while (numbers.size() < tensor.numbers.size()) {
    numbers.push_back(tensor.numbers[from]);
    for (std::size_t k = n_axes; k-- > 0;) {
      from += steps[k];
      if (++at[k] < shape[k]) break;
      from -= steps[k] * shape[k];
      at[k] = 0;
    }
  }
  tensor.numbers = std::move(numbers);
  tensor.shape = std::move(shape);
  return tensor;
}

/// Returns 0, 1, … with one axis moved to another place.
TensorShape moved_axis_order(std::size_t n_axes, std::size_t from, std::size_t to) {
  TensorShape order;
  for (std::size_t k = 0; k < n_axes; ++k)
    if (k != from) order.push_back(k);
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(to), from);
  return order;
}

/// Transposes weights [.., queries, keys, heads] to [.., heads, queries, keys], and notes it, when the axis
/// that sums to 1 reveals this order; others stay.
Tensor with_heads_in_front(Tensor weights, ImportReport& import_report) {
  const std::size_t n = weights.shape.size();
  if (n < 3 || weights.numbers.empty() || sums_to_one(weights) ||
      !sums_to_one(permute(weights, moved_axis_order(n, n - 2, n - 1))))
    return weights;
  if (weights.shape[n - 3] != weights.shape[n - 2] && weights.shape[n - 2] == weights.shape[n - 1])
    return weights;  // [heads, T, T] whose columns sum to 1: the softmax went the wrong way
  import_report.assumed.push_back("that the last axis of " + tensor_words(weights) +
                                  " counts heads, as the one before it sums to 1");
  return permute(std::move(weights), moved_axis_order(n, n - 1, n - 3));
}

/// Returns the number of heads of queries, keys or values by their name; else notes the assumption that heads
/// come before tokens.
std::optional<std::size_t> heads_by_name(const TensorInfo& info, ImportReport& import_report) {
  const std::size_t n = info.shape.size();
  if (n != 3 && n != 4) return std::nullopt;
  // TransformerLens has heads after tokens.
  for (const char* hook : {"hook_q", "hook_k", "hook_v"})
    if (info.name.ends_with(hook)) return info.shape[n - 2];
  if (info.shape[n - 3] == 1) return std::nullopt;  // one head, which is noted elsewhere
  import_report.assumed.push_back(tensor_words(info) + " is [" + (n == 4 ? "sequences, " : "") +
                                  "heads, tokens, columns] (--heads would tell)");
  return std::nullopt;
}

/// Returns queries, keys or values of n_heads as [.., heads, tokens, d_head]: splits columns of [1, tokens,
/// columns] and [sequences, tokens, columns], transposes [sequences, tokens, heads, d_head]; notes it.
/// Without a number of heads, or of two dimensions, they stay.
Tensor with_heads(Tensor tensor, std::optional<std::size_t> n_heads, const std::string& place,
                  ImportReport& import_report) {
  const std::size_t n = tensor.shape.size();
  if (!n_heads || n < 3 || n > 4 || tensor.numbers.empty() || tensor.shape[n - 3] == *n_heads) return tensor;
  const std::string words = tensor_words(tensor);
  if (n == 3 && tensor.shape[0] > 1 && tensor.shape[1] == *n_heads && tensor.shape[2] % *n_heads != 0) {
    import_report.assumed.push_back(words + " is [tokens, heads, columns]");
    return permute(std::move(tensor), {1, 0, 2});
  }
  if (n == 3 && tensor.shape[2] % *n_heads == 0) {
    const TensorShape& s = tensor.shape;
    tensor.shape = {s[0], s[1], *n_heads, s[2] / *n_heads};
    import_report.assumed.push_back(
        fmt::format("{} is [sequences, tokens, columns of {} heads]", words, *n_heads));
    return permute(std::move(tensor), {0, 2, 1, 3});
  }
  if (n == 4 && tensor.shape[2] == *n_heads) {
    import_report.assumed.push_back(words + " is [sequences, tokens, heads, columns]");
    return permute(std::move(tensor), {0, 2, 1, 3});
  }
  if (n == 4 && tensor.shape[1] > 0 && *n_heads % tensor.shape[1] == 0) return tensor;  // grouped
  throw Error(fmt::format("{}expected {} heads, got {}", place, *n_heads, formats::shape_text(tensor.shape)));
}

bool is_score(double number) {
  return std::isfinite(number) && number > masked_score;
}

/// Returns the factor between Q·Kᵀ and scores where both are finite, or nothing if they do not match.
std::optional<double> factor_between(const GivenStage& scores, const GivenStage& queries,
                                     const GivenStage& keys) {
  const std::size_t n = scores.matrices.size();
  if (queries.matrices.size() != n || n == 0 || n % keys.matrices.size() != 0) return std::nullopt;
  const std::size_t repeats = n / keys.matrices.size();
  double products = 0, squares = 0, largest = 0;
  std::vector<arma::mat> raw;
  for (std::size_t m = 0; m < n; ++m) {
    const arma::mat &q = queries.matrices[m], &k = keys.matrices[m / repeats], &s = scores.matrices[m];
    if (q.n_cols != k.n_cols || q.n_rows != s.n_rows || k.n_rows != s.n_cols) return std::nullopt;
    raw.emplace_back(q * k.t());
    for (arma::uword c = 0; c < s.n_elem; ++c) {
      if (!is_score(s[c])) continue;
      products += s[c] * raw[m][c], squares += raw[m][c] * raw[m][c];
      largest = std::max(largest, std::abs(s[c]));
    }
  }
  if (!(squares > 0) || !(largest > 0)) return std::nullopt;
  const double factor = products / squares;
  for (std::size_t m = 0; m < n; ++m) {
    const arma::mat& s = scores.matrices[m];
    for (arma::uword c = 0; c < s.n_elem; ++c)
      if (is_score(s[c]) && !(std::abs(s[c] - factor * raw[m][c]) <= rounding_of_a_score * largest))
        return std::nullopt;
  }
  return factor;
}

bool has_masked_scores(const GivenStage& scores) {
  return std::ranges::any_of(
      scores.matrices, [](const arma::mat& m) { return arma::any(arma::vectorise(m) <= masked_score); });
}

/// The kind of a file's scores: their stage, and the factor that is still missing.
struct ScoreKind {
  attention::Stage stage = attention::Stage::scores;
  std::optional<double> factor;
  std::string words;  ///< the evidence, or the assumption
  bool is_assumed = false;
};

/// Distinguishes raw scores from scaled ones by Q·Kᵀ, if queries and keys are known, else by whether there is
/// a scale next to them.
ScoreKind judge_scores(const GivenStage& scores, const GivenStage* queries, const GivenStage* keys,
                       bool has_scale) {
  const Stage scaled_stage = has_masked_scores(scores) ? Stage::masked_scores : Stage::scaled_scores;
  const auto factor = queries && keys ? factor_between(scores, *queries, *keys) : std::nullopt;
  if (factor && std::abs(*factor - 1) <= same_factor) {
    const auto d_head = static_cast<double>(queries->matrices.front().n_cols());
    return {Stage::scores, 1 / std::sqrt(d_head), "the scores are Q·Kᵀ, not scaled yet"};
  }
  if (factor)
    return {scaled_stage,
            {},
            "the scores are scaled already: Q·Kᵀ × " + text::number_text(std::round(*factor * 1e4) / 1e4)};
  if (queries && keys)
    return {scaled_stage, {}, "the scores, which are not Q·Kᵀ times a number, are scaled already", true};
  if (has_scale) return {Stage::scores, {}, "the scores are still to be scaled", true};
  return {scaled_stage, {}, "the scores are scaled already", true};
}

/// Tensors next to stages that say how to continue: a scale, masks, a bias, whether it is causal.
struct MaskAndScale {
  const formats::TensorInfo *scale = nullptr, *is_causal = nullptr;
  std::vector<const formats::TensorInfo*> masks;  ///< and biases, which are added as well
};

constexpr std::size_t max_cells = std::size_t{1} << 22;

constexpr const char* names_of_scales = " scale scaling softmax_scale sm_scale scale_factor ";
constexpr const char* names_of_masks =
    " mask attn_mask attention_mask causal_mask attn_bias attention_bias position_bias ";

/// Reads a mask or a scale, for that layer alone when it has an axis of layers as the stages have.
Tensor read_mask_or_scale(const TensorFile& file, const TensorInfo& info, const LayerIndex& layer,
                          const core::StopToken& progress) {
  const std::size_t n_axes = info.shape.size();
  const bool has_layers = layer.n > 0 && n_axes > 0 && n_axes != 2 && info.shape[0] == layer.n;
  return file.read(info.name, has_layers ? formats::TensorShape{layer.index} : formats::TensorShape(),
                   progress);
}

/// The effect of a mask on one sequence and head.
struct MaskEffect {
  arma::mat visible;      ///< 1, or 0 where masked
  arma::mat added;        ///< addition to unmasked scores
  bool has_bias = false;  ///< whether that is not 0 everywhere
};

/// Returns the share of queries, of those with an unmasked key, that attend to the key at their own position.
/// Positions count from the first key, or so that the last query has the last key.
double self_attending_share(const std::vector<arma::mat>& all, double unmasked, bool from_last) {
  double n_unmasked = 0, n = 0;
  for (const arma::mat& m : all)
    for (arma::uword i = 0; i < m.n_rows; ++i) {
      if (!arma::any(m.row(i) == unmasked)) continue;
      const arma::uword place =
          from_last ? i + m.n_cols - m.n_rows : i;  // wraps to a large number before the first key
      ++n, n_unmasked += place < m.n_cols && m(i, place) == unmasked;
    }
  return n > 0 ? n_unmasked / n : 0;
}

/// Returns whether 1 masks: otherwise some query would have no key, and fewer would attend to their own.
///
/// Padding queries have no key in either reading, so having none is not enough.
bool is_inverted_mask(const std::vector<arma::mat>& all) {
  const auto has_empty_row = [](const arma::mat& m) {
    return arma::any(arma::vectorise(arma::all(m == 0, 1)));
  };
  if (std::ranges::none_of(all, has_empty_row)) return false;
  for (const bool from_last : {true, false})
    if (self_attending_share(all, 0, from_last) > self_attending_share(all, 1, from_last)) return true;
  return false;
}

/// Returns whether the numbers mask by being 1 and 0, in either reading.
bool is_zero_one_mask(const std::vector<arma::mat>& all, bool is_boolean, bool is_bias) {
  if (is_boolean || is_bias) return is_boolean;
  const auto is_known = [](const arma::mat& m) { return arma::all(arma::vectorise(m == 0 || m == 1)); };
  const auto has_one = [](const arma::mat& m) { return arma::any(arma::vectorise(m) == 1); };
  return std::ranges::all_of(all, is_known) && std::ranges::any_of(all, has_one);
}

/// Returns the effect of adding the numbers.
MaskEffect added(const arma::mat& numbers) {
  MaskEffect mask{arma::mat(arma::size(numbers), arma::fill::ones), numbers};
  for (arma::uword k = 0; k < numbers.n_elem; ++k) {
    if (numbers[k] <= masked_score)
      mask.visible[k] = mask.added[k] = 0;
    else
      mask.has_bias |= numbers[k] != 0;
  }
  return mask;
}

/// Returns one matrix of n_queries × n_keys for each head or sequence, or none when it does not fit.
std::vector<arma::mat> expand_mask(const Tensor& tensor, const attention::Model& model) {
  std::vector<arma::mat> all;
  if (tensor.numbers.empty() || tensor.shape.empty()) return all;
  if (tensor.shape.size() < 3)
    all = {formats::matrix(tensor)};
  else
    all = formats::matrices(tensor);
  const std::size_t n_queries = model.n_tokens(), n_keys = model.n_keys(), n = model.sequences.size();
  if (tensor.shape.size() == 2 && all[0].n_rows == n && n != n_queries && n > 1) {  // keys of each sequence
    const arma::mat rows = all[0];
    all.clear();
    for (arma::uword s = 0; s < rows.n_rows; ++s) all.emplace_back(rows.row(s));
  }
  for (arma::mat& each : all) {
    if (each.n_rows == 1 && n_queries > 1) each = arma::repmat(each, n_queries, 1);
    if (each.n_rows != n_queries || each.n_cols != n_keys) return {};
  }
  return all;
}

void add_unsupported_tensor(ImportReport& import_report, const char* name, const TensorInfo& info) {
  const auto& feature = formats::checkpoints::feature_named(name);
  import_report.not_supported.push_back(
      {feature.name, std::string(feature.words) + " (" + tensor_words(info) + ")"});
}

/// Masks keys of each sequence if there is a mask for each and they differ only in whole columns, as by
/// padding; their common part masks cells of visible.
bool apply_padding(const std::vector<arma::mat>& all, attention::Model& model, arma::mat& visible) {
  if (all.size() != model.sequences.size()) return false;
  arma::mat common = all[0];
  for (const arma::mat& each : all) common = arma::max(common, each);
  std::vector<std::vector<std::size_t>> masked(all.size());
  for (std::size_t s = 0; s < all.size(); ++s)
    for (arma::uword j = 0; j < all[s].n_cols; ++j) {
      const bool is_masked_key = arma::all(all[s].col(j) == 0);
      if (!is_masked_key && !arma::all(all[s].col(j) == common.col(j))) return false;
      if (is_masked_key) masked[s].push_back(j);
    }
  model.mask.hidden_keys = std::move(masked);
  visible %= common;
  return true;
}

/// Returns whether matrices of one size are equal; a NaN equals nothing.
bool are_equal(const arma::mat& a, const arma::mat& b) {
  return arma::all(arma::vectorise(a == b));
}

bool are_same(const std::vector<arma::mat>& all) {
  return std::ranges::all_of(all, [&](const arma::mat& m) { return are_equal(m, all[0]); });
}

/// Adds numbers to the scores, one matrix for all heads or one for each, if sequences have the same; where
/// heads mask different cells, −∞ is added there.
bool apply_bias(const std::vector<MaskEffect>& all, ImportResult& result, arma::mat& visible) {
  attention::Model& model = result.model;
  std::vector<arma::mat> unmasked, numbers;
  for (const MaskEffect& one : all) unmasked.push_back(one.visible), numbers.push_back(one.added);
  const bool masks_same_cells = are_same(unmasked);
  if (!masks_same_cells)
    for (std::size_t k = 0; k < all.size(); ++k)
      numbers[k].elem(arma::find(unmasked[k] == 0)).fill(-arma::datum::inf);
  if (are_same(numbers)) {
    numbers.resize(1);
  } else {
    const std::size_t n = model.n_heads;
    if (numbers.size() % n != 0) return false;
    for (std::size_t k = n; k < numbers.size(); ++k)
      if (!are_equal(numbers[k], numbers[k % n])) return false;
    // With as many sequences as heads, they may be one for each sequence.
    if (numbers.size() == n && model.sequences.size() == n && n > 1) return false;
    numbers.resize(n);
  }
  for (const arma::mat& each : numbers) {
    const bool is_number = arma::all(arma::vectorise(each) < arma::datum::inf);  // false for NaN, too
    if (!is_number) return false;
  }
  if (masks_same_cells) visible %= unmasked[0];
  model.additions.score_bias.clear();
  for (arma::mat& each : numbers) model.additions.score_bias.emplace_back(std::move(each));
  return true;
}

enum class MaskUse { no, as_mask, as_bias };

/// Masks cells of visible by a mask, and adds its other numbers to the scores, or notes why not.
MaskUse apply_mask(const Tensor& tensor, ImportResult& result, arma::mat& visible) {
  const auto all = expand_mask(tensor, result.model);
  if (all.empty()) {
    result.import_report.assumed.push_back(tensor_words(tensor) + " is not a mask: its shape does not fit");
    return MaskUse::no;
  }
  const bool is_binary =
      is_zero_one_mask(all, tensor.dtype == formats::Dtype::boolean, tensor.name.ends_with("bias"));
  const bool is_inverted = is_binary && is_inverted_mask(all);
  std::vector<MaskEffect> effects;
  std::vector<arma::mat> unmasked;
  for (const arma::mat& each : all) {
    effects.push_back(is_binary ? MaskEffect{is_inverted ? arma::mat(1 - each) : each, {}} : added(each));
    unmasked.push_back(effects.back().visible);
  }
  if (std::ranges::any_of(effects, &MaskEffect::has_bias)) {
    const bool is_first = result.model.additions.score_bias.empty();
    if (is_first && apply_bias(effects, result, visible)) return MaskUse::as_bias;
    return add_unsupported_tensor(result.import_report, "bias", tensor), MaskUse::no;
  }
  if (are_same(unmasked))
    visible %= unmasked[0];
  else if (!apply_padding(unmasked, result.model, visible))
    return add_unsupported_tensor(result.import_report, "mask", tensor), MaskUse::no;
  if (is_inverted)
    result.import_report.assumed.push_back("1 in " + tensor.name +
                                           " hides, as else a query would see nothing");
  else if (is_binary)
    result.import_report.used.push_back("1 in " + tensor.name + " shows");
  return MaskUse::as_mask;
}

/// Sets the causal rule if it masks the same cells, with queries aligned to the last keys or the first.
bool set_causal_if_so(attention::Model& model, const arma::mat& visible) {
  attention::Mask& mask = model.mask;
  mask.causal = true;
  for (const auto align : {attention::MaskAlignment::last, attention::MaskAlignment::first}) {
    mask.align = align;
    arma::mat rule(visible.n_rows, visible.n_cols);
    for (std::size_t i = 0; i < visible.n_rows; ++i)
      for (std::size_t j = 0; j < visible.n_cols; ++j)
        rule(i, j) = static_cast<std::int64_t>(j) <= attention::aligned_query_position(model, i);
    if (are_equal(rule, visible)) return true;
  }
  mask.causal = false;
  mask.align = {};
  return false;
}

void put_mask(attention::Model& model, const arma::mat& visible, const std::string& place) {
  if (arma::all(arma::vectorise(visible) == 1) || set_causal_if_so(model, visible)) return;
  const arma::uvec masked = arma::find(visible.t() == 0);  // row by row
  if (masked.n_elem > max_cells)
    throw Error(fmt::format("{}expected at most {} masked cells, got {}", place, max_cells, masked.n_elem));
  for (const arma::uword k : masked)
    model.mask.cells.push_back({k / visible.n_cols, k % visible.n_cols, false});
}

bool apply_scale(const Tensor& tensor, ImportResult& result) {
  attention::Model& model = result.model;
  if (tensor.numbers.size() != 1 || !std::isfinite(tensor.numbers[0])) return false;
  const double number = tensor.numbers[0], root = std::sqrt(static_cast<double>(model.d_head()));
  const bool divides = root > 1 && std::abs(number - root) <= 1e-3 * root;
  model.scale = {attention::ScaleRule::factor, divides ? 1 / number : number};
  if (divides)
    result.import_report.assumed.push_back(
        fmt::format("scores are divided by {}, which is √{}", tensor.name, model.d_head()));
  return true;
}

/// Returns those of a layer of that name, and those without a layer.
MaskAndScale mask_and_scale_in(const TensorFile& file, const std::string& layer) {
  MaskAndScale found;
  for (const TensorInfo& info : file.tensors()) {
    const auto [owner, last] = owner_and_last(info.name);
    const std::string name = text::lower(last);
    if (info.dtype == formats::Dtype::text || (!owner.empty() && owner != layer)) continue;
    if (text::has_word(names_of_scales, name)) found.scale = &info;
    if (name == "is_causal" || name == "causal") found.is_causal = &info;
    if (text::has_word(names_of_masks, name)) found.masks.push_back(&info);
  }
  return found;
}

/// Applies them to a model of given stages, unless these are already masked or scaled; returns the names of
/// those that were used.
std::vector<std::string> apply_mask_and_scale(const TensorFile& file, const MaskAndScale& mask_and_scale,
                                              const LayerIndex& layer, ImportResult& result,
                                              const core::StopToken& progress) {
  attention::Model& model = result.model;
  ImportReport& import_report = result.import_report;
  std::vector<std::string> used;
  if (model.given.find(Stage::weights) || model.given.find(Stage::masked_scores)) return used;
  const auto note = [&](const TensorInfo& info, const char* as) {
    used.push_back(info.name);
    import_report.used.push_back(tensor_words(info) + " as " + as);
  };
  const bool scales = !model.given.find(Stage::scaled_scores);
  const bool is_scaled =
      scales && mask_and_scale.scale &&
      apply_scale(read_mask_or_scale(file, *mask_and_scale.scale, layer, progress), result);
  if (is_scaled) note(*mask_and_scale.scale, "the scale");
  if (scales && !is_scaled && model.scale.rule != attention::ScaleRule::factor)
    import_report.assumed.push_back(scale_words(model));

  arma::mat visible(model.n_tokens(), model.n_keys(), arma::fill::ones);
  std::size_t n_named = 0;
  if (mask_and_scale.is_causal) {
    const Tensor tensor = read_mask_or_scale(file, *mask_and_scale.is_causal, layer, progress);
    if (tensor.numbers.size() == 1) {
      note(*mask_and_scale.is_causal, "whether it is causal");
      ++n_named;
      for (std::size_t i = 0; tensor.numbers[0] != 0 && i < visible.n_rows; ++i)
        for (std::size_t j = i + 1; j < visible.n_cols; ++j) visible(i, j) = 0;  // as PyTorch does
    }
  }
  for (const TensorInfo* info : mask_and_scale.masks) {
    const MaskUse mask_use = apply_mask(read_mask_or_scale(file, *info, layer, progress), result, visible);
    if (mask_use == MaskUse::no) continue;
    note(*info, mask_use == MaskUse::as_mask ? "the mask" : "a bias of the scores");
    if (mask_use == MaskUse::as_bias && model.given.find(Stage::scaled_scores))
      import_report.assumed.push_back("that the scores do not include " + info->name);
    ++n_named;
  }
  put_mask(model, visible, file.place());
  if (n_named == 0) import_report.assumed.push_back("not causal: every key is attended to");
  return used;
}

// A model of stages.

const TensorInfo& info_of(const TensorFile& file, const StageSource& source) {
  return file.info(source.tensors.empty() ? "" : source.tensors.front());
}

/// Returns the layer chosen by a number from 0, or by the beginning of its name.
std::size_t chosen_layer(const TensorFile& file, const std::string& chosen, std::size_t n_layers,
                         const std::vector<StageLayer>& named) {
  if (chosen.empty()) return 0;
  if (const auto number = text::parse_unsigned(chosen); number && *number < n_layers) return *number;
  for (std::size_t k = 0; k < named.size(); ++k)
    if (n_layers == named.size() && named[k].name.starts_with(chosen)) return k;
  throw Error(file.place() +
              (n_layers == 1 ? "expected layer 0, the only one"
                             : "expected a layer of 0 … " + std::to_string(n_layers - 1)) +
              ", got \"" + chosen + "\"");
}

/// Returns whether a mask next to stages of four axes shows that their first axis counts sequences: it has as
/// many rows of keys, or as many matrices for all heads.
bool masks_count_sequences(const TensorFile& file, const std::vector<StageSource>& stages,
                           const MaskAndScale& mask_and_scale) {
  std::optional<std::size_t> n;
  std::vector<std::size_t> lengths;
  for (const StageSource& source : stages) {
    const formats::TensorShape& shape = info_of(file, source).shape;
    if (shape.size() != 4 || shape[0] < 2 || (n && n != shape[0])) return false;
    n = shape[0];
    const bool is_of_scores = attention::info(source.stage).columns == attention::Columns::tokens;
    if (is_of_scores)
      lengths = {shape[3]};
    else if (source.stage == Stage::keys)
      lengths = {shape[1], shape[2]};  // heads come before tokens or after them
  }
  const auto is_length = [&](std::size_t keys) { return std::ranges::find(lengths, keys) != lengths.end(); };
  return std::ranges::any_of(mask_and_scale.masks, [&](const TensorInfo* mask) {
    const formats::TensorShape& shape = mask->shape;
    if (shape.empty() || shape[0] != n || !is_length(shape.back())) return false;
    const bool is_of_keys = shape.size() == 2 && !is_length(shape[0]);  // not of queries and keys
    return is_of_keys || (shape.size() == 4 && shape[1] == 1);
  });
}

const StageSource* find(const StageLayer& layer, Stage stage) {
  return find_by(layer.stages, stage, &StageSource::stage);
}

}  // namespace

std::vector<StageLayer> find_stages(const TensorFile& file, const core::StopToken& progress) {
  using HeadTensors = std::map<std::size_t, std::string>;
  std::map<std::string, std::map<Stage, HeadTensors>, decltype(&text::natural_less)> layers(
      text::natural_less);
  for (const TensorInfo& info : file.tensors()) {
    if (!can_be_a_stage(info)) continue;
    const auto parsed = stage_by_name(info.name);
    if (parsed) layers[parsed->layer][parsed->stage].emplace(parsed->head.value_or(0), info.name);
  }
  if (layers.empty()) return nameless_weights(file, progress);
  std::vector<StageLayer> result;
  for (const auto& [name, stages] : layers) {
    StageLayer& layer = result.emplace_back(StageLayer{name, {}});
    for (const auto& [stage, heads] : stages) {
      StageSource& source = layer.stages.emplace_back(StageSource{stage, {}});
      for (const auto& [head, tensor] : heads) source.tensors.push_back(tensor);
    }
  }
  return result;
}

std::vector<StageSource> default_stages(const StageLayer& layer) {
  std::vector<StageSource> usual;
  for (const Stage stage : {Stage::weights, Stage::masked_scores, Stage::scaled_scores, Stage::scores})
    if (const StageSource* source = find(layer, stage); source && usual.empty()) usual.push_back(*source);
  const StageSource *queries = find(layer, Stage::queries), *keys = find(layer, Stage::keys);
  if (usual.empty() && queries && keys) usual = {*queries, *keys};
  if (usual.empty()) return {};
  if (const StageSource* values = find(layer, Stage::values)) usual.push_back(*values);
  return usual;
}

bool counts_sequences(const TensorFile& file, const std::vector<StageSource>& stages,
                      const std::string& layer, const Choices& choices) {
  return choices.first_axis_is_batch ||
         (choices.layer.empty() && masks_count_sequences(file, stages, mask_and_scale_in(file, layer)));
}

std::size_t count_layers(const TensorFile& file, const std::vector<StageSource>& stages,
                         bool first_axis_is_batch) {
  std::optional<std::size_t> n_layers;
  for (const StageSource& source : stages) {
    const TensorInfo& info = info_of(file, source);
    const auto& shape = info.shape;
    if (info.dtype == formats::Dtype::text || formats::count_of(shape) == std::uint64_t{0})
      throw Error(file.place() + info.name + ": expected at least one number, got " +
                  formats::shape_text(shape));
    const bool has_layers = shape.size() == 5 || (shape.size() == 4 && shape[0] > 1 && !first_axis_is_batch);
    const std::size_t n = has_layers ? shape[0] : 0;
    if (n_layers && *n_layers != n)
      throw Error(fmt::format("{}{}: expected {} layers, as the other stages have, got {}", file.place(),
                              info.name, *n_layers, formats::shape_text(shape)));
    n_layers = n;
  }
  return n_layers.value_or(0);
}

ImportReport expected_of_stages(const TensorFile& file, const std::vector<StageSource>& stages,
                                const std::string& layer) {
  ImportReport import_report;
  std::vector<std::string> used;
  for (const StageSource& source : stages)
    used.insert(used.end(), source.tensors.begin(), source.tensors.end());
  const MaskAndScale mask_and_scale = mask_and_scale_in(file, layer);
  const bool is_masked = find_by(stages, Stage::weights, &StageSource::stage) ||
                         find_by(stages, Stage::masked_scores, &StageSource::stage);
  const bool is_scaled = is_masked || find_by(stages, Stage::scaled_scores, &StageSource::stage);
  std::vector<const TensorInfo*> applied;
  if (!is_masked) applied = mask_and_scale.masks;
  if (!is_masked && mask_and_scale.is_causal) applied.push_back(mask_and_scale.is_causal);
  if (!is_scaled && mask_and_scale.scale) applied.push_back(mask_and_scale.scale);
  for (const TensorInfo* info : applied) used.push_back(info->name);
  for (const std::string& name : used)
    if (const TensorInfo* info = file.find(name)) import_report.used.push_back(tensor_words(*info));
  if (!is_masked && mask_and_scale.masks.empty() && !mask_and_scale.is_causal)
    import_report.assumed.push_back("not causal: every key is attended to");
  note_unused(import_report, file, used, layer);
  return import_report;
}

namespace {

/// The import of the stages of one layer as a model.
class StageImporter {
 public:
  StageImporter(const TensorFile& file, const std::vector<StageLayer>& found, const Choices& choices,
                const core::StopToken& progress)
      : file_(file), found_(found), choices_(choices), progress_(progress), n_heads_(choices.n_heads) {
    choose();
  }

  ImportResult imported() {
    for (const StageSource& source : stages_)
      for (const std::string& name : source.tensors)
        use(name, std::string(" as ") + attention::info(source.stage).name);
    const MaskAndScale mask_and_scale = mask_and_scale_in(file_, stage_layer_.name);
    std::size_t n_sequences = 1;
    std::vector<GivenStage> given = read_all(n_sequences);
    std::optional<double> factor;
    if (choices_.stages.empty() && !found_.empty()) factor = judge(given, mask_and_scale.scale != nullptr);
    attention::Model& model = result_.model;
    try {
      model = attention::model_of(std::move(given), n_sequences);
    } catch (const Error& error) {
      throw Error(file_.place() + error.what());
    }
    const TensorInfo& first = info_of(file_, stages_.front());
    if (layer_.n > 0 && choices_.layer.empty() && first.shape.size() == 4)
      report_.assumed.push_back("that the first axis of " + tensor_words(first) +
                                " counts layers, not sequences");
    if (is_batch_ && !choices_.first_axis_is_batch)
      report_.used.push_back("the first axis as sequences, of which a mask has as many");
    const std::string n_heads = text::counted(model.n_heads, "head");
    if (choices_.n_heads)
      report_.used.push_back(n_heads + ", as said");
    else if (model.n_heads == 1 && model.given.find(Stage::queries))
      report_.assumed.push_back(n_heads);
    if (factor) model.scale = {attention::ScaleRule::factor, *factor};
    if (factor && !mask_and_scale.scale) report_.assumed.push_back(scale_words(model));
    for (std::string& name : apply_mask_and_scale(file_, mask_and_scale, layer_, result_, progress_))
      used_.push_back(std::move(name));
    if (choices_.ignored) require_ignored(report_, *choices_.ignored, file_.place());
    if (const std::string wrong = row_sums_note(model); !wrong.empty()) result_.notes.push_back(wrong);
    note_unused(report_, file_, used_, by_name_ ? stage_layer_.name : "");
    for (attention::Sequence& sequence : model.sequences)
      sequence.tokens = tokens_in(file_, sequence.tokens.size(), progress_);
    for (const formats::TensorStage& table : labeled_)
      if (name_tokens(model, table)) report_.used.push_back("names of rows and columns as tokens");
    result_.notes.push_back(opened_note());
    return std::move(result_);
  }

 private:
  /// Chooses a layer, by its name or along a first axis, and its stages.
  void choose() {
    by_name_ = choices_.stages.empty() && found_.size() > 1;
    std::size_t index = by_name_ ? chosen_layer(file_, choices_.layer, found_.size(), found_) : 0;
    if (!found_.empty()) stage_layer_ = found_[index];
    const bool has_first =
        choices_.computes_stages && find(stage_layer_, Stage::queries) && find(stage_layer_, Stage::keys);
    if (has_first)
      std::erase_if(stage_layer_.stages,
                    [](const StageSource& s) { return !attention::is_projected(s.stage); });
    stages_ = choices_.stages.empty() ? default_stages(stage_layer_) : choices_.stages;
    if (stages_.empty())
      throw Error(file_.place() + "expected weights, scores, or queries and keys among its tensors");
    is_batch_ = counts_sequences(file_, stages_, stage_layer_.name, choices_);
    layer_ = {index, by_name_ ? 0 : count_layers(file_, stages_, is_batch_)};
    if (by_name_) return;
    const bool has_a_name = found_.size() == 1 && !stage_layer_.name.empty();
    if (layer_.n > 0 || has_a_name)
      layer_.index = chosen_layer(file_, choices_.layer, std::max<std::size_t>(1, layer_.n), found_);
    else
      refuse_layer(file_, choices_);
    if (!found_.empty()) stage_layer_ = found_[std::min(layer_.index, found_.size() - 1)];
  }

  void use(const std::string& name, const std::string& as) {
    used_.push_back(name);
    report_.used.push_back(tensor_words(file_.info(name)) + as);
  }

  std::string opened_note() const {
    const auto words = [&](const StageSource& source) {
      return std::string(attention::info(source.stage).name) + " " +
             formats::shape_text(info_of(file_, source).shape);
    };
    const std::size_t n = by_name_ ? found_.size() : layer_.n;
    return "Given " + text::joined(stages_, ", ", words) +
           (n > 0 ? fmt::format(": layer {} of {}", layer_.index, n) : "") + ".";
  }

  /// Reads a stage, with as many heads as the user said or as earlier stages have; a stage with a matrix per
  /// head determines their number.
  formats::TensorStage read(const StageSource& source) {
    const bool has_head_columns = attention::is_projected(source.stage) && source.tensors.size() == 1;
    formats::TensorStage all{{source.stage, {}}, 1};
    for (const std::string& name : source.tensors) {
      const std::string place = file_.place() + name + ": ";
      Tensor tensor = numbers_of(file_.info(name));
      note_index(file_, tensor, choices_.index, report_);
      if (source.stage == Stage::weights) tensor = with_heads_in_front(std::move(tensor), report_);
      if (has_head_columns && !n_heads_) n_heads_ = heads_by_name(tensor, report_);
      const auto& n_kv_heads = choices_.settings.n_kv_heads;
      const auto n_own = n_kv_heads && source.stage != Stage::queries ? n_kv_heads : n_heads_;
      if (has_head_columns) tensor = with_heads(std::move(tensor), n_own, place, report_);
      auto part =
          formats::stage_from_tensor(tensor, source.stage, has_head_columns ? n_own.value_or(1) : 1, place);
      all.n_sequences = part.n_sequences;
      if (source.tensors.size() == 1)
        all.row_labels = part.row_labels, all.column_labels = part.column_labels;
      for (auto& matrix : part.given.matrices) all.given.matrices.push_back(std::move(matrix));
    }
    repeat_kv_heads(source, all);
    const std::size_t n = all.given.matrices.size() / std::max<std::size_t>(1, all.n_sequences);
    if (n_heads_ && *n_heads_ != n)
      throw Error(fmt::format("{}{}: expected {} heads, got {} in {}", file_.place(), source.tensors.front(),
                              *n_heads_, n, formats::shape_text(file_.info(source.tensors.front()).shape)));
    n_heads_ = n;
    return all;
  }

  /// Reads all stages, first those that determine the number of heads; all have as many sequences.
  std::vector<GivenStage> read_all(std::size_t& n_sequences) {
    std::vector<StageSource> stages = stages_;
    std::ranges::stable_partition(stages,
                                  [](const StageSource& s) { return !attention::is_projected(s.stage); });
    std::vector<GivenStage> all;
    for (const StageSource& source : stages) {
      formats::TensorStage stage = read(source);
      if (!all.empty() && stage.n_sequences != n_sequences)
        throw Error(fmt::format("{}{}: expected {} sequences, as the other stages have, got {}",
                                file_.place(), source.tensors.front(), n_sequences, stage.n_sequences));
      n_sequences = stage.n_sequences;
      if (!stage.row_labels.empty() || !stage.column_labels.empty()) labeled_.push_back(stage);
      all.push_back(std::move(stage.given));
    }
    return all;
  }

  Tensor numbers_of(const TensorInfo& info) const {
    const TensorShape leading = layer_.n > 0 ? TensorShape{layer_.index} : TensorShape();
    // Sequences, heads, tokens and columns have one limit; a larger model is refused before it is read.
    const bool is_within = std::ranges::all_of(std::span(info.shape).subspan(leading.size()),
                                               [](std::size_t n) { return n <= attention::max_tokens; });
    if (!is_within)
      throw Error(fmt::format("{}{}: expected axes of at most {}, got {}", file_.place(), info.name,
                              attention::max_tokens, formats::shape_text(info.shape)));
    return file_.read(info.name, leading, progress_);
  }

  /// Repeats keys or values so that each query head has those of its group.
  void repeat_kv_heads(const StageSource& source, formats::TensorStage& stage) {
    if (!n_heads_ || !attention::is_projected(source.stage) || source.stage == Stage::queries ||
        stage.n_sequences == 0)
      return;
    auto& matrices = stage.given.matrices;
    const std::size_t n = matrices.size() / stage.n_sequences;
    if (n == 0 || n >= *n_heads_ || *n_heads_ % n != 0) return;
    std::vector<attention::SharedMatrix> repeated;
    for (const auto& matrix : matrices) repeated.insert(repeated.end(), *n_heads_ / n, matrix);
    matrices = std::move(repeated);
    report_.used.push_back(fmt::format("{} heads of {}, each for {} heads of queries", n,
                                       source.tensors.front(), *n_heads_ / n));
  }

  /// Determines which stage the scores are, with queries and keys as evidence; returns the factor that is
  /// still missing, if any.
  std::optional<double> judge(std::vector<GivenStage>& given, bool has_scale) {
    const auto scores = std::ranges::find(given, Stage::scores, &GivenStage::stage);
    if (scores == given.end()) return std::nullopt;
    std::optional<formats::TensorStage> queries, keys;
    const StageSource *q = find(stage_layer_, Stage::queries), *k = find(stage_layer_, Stage::keys);
    if (q && k) {
      try {
        if (count_layers(file_, {*q, *k}, is_batch_) != layer_.n) throw Error("of other layers");
        queries = read(*q), keys = read(*k);
        for (const StageSource* source : {q, k})
          for (const std::string& name : source->tensors) use(name, " to tell what the scores are");
      } catch (const core::Stopped&) {
        throw;
      } catch (const Error&) {
        queries.reset(), keys.reset();  // of another shape they are no evidence
      }
    }
    const ScoreKind kind =
        judge_scores(*scores, queries ? &queries->given : nullptr, keys ? &keys->given : nullptr, has_scale);
    scores->stage = kind.stage;
    (kind.is_assumed ? report_.assumed : report_.used).push_back(kind.words);
    return kind.factor;
  }

  const TensorFile& file_;
  const std::vector<StageLayer>& found_;
  const Choices& choices_;
  const core::StopToken& progress_;
  std::optional<std::size_t> n_heads_;
  bool by_name_ = false, is_batch_ = false;
  StageLayer stage_layer_;  // the layer as it was found
  std::vector<StageSource> stages_;
  LayerIndex layer_;
  std::vector<std::string> used_;
  std::vector<formats::TensorStage> labeled_;  ///< tables with names
  ImportResult result_;
  ImportReport& report_ = result_.import_report;
};

}  // namespace

ImportResult import_stages(const TensorFile& file, const std::vector<StageLayer>& found,
                           const Choices& choices, const core::StopToken& progress) {
  return StageImporter(file, found, choices, progress).imported();
}

}  // namespace core::importing
