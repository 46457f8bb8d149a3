#include "core/importing/import_parts.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/files/families.hpp"
#include "core/graph/visible.hpp"

namespace core::importing {
namespace {

using attention::Stage;
using formats::Tensor;
using formats::TensorFile;
using formats::TensorInfo;

constexpr double as_good_as_masked = -1e4;  // what people add instead of −inf is at least as low
constexpr std::size_t most_cells = std::size_t{1} << 22;

bool is_one_of(const std::string& name, std::string_view words) {
  return words.find(" " + name + " ") != words.npos;
}

constexpr const char* names_of_scales = " scale scaling softmax_scale sm_scale scale_factor ";
constexpr const char* names_of_masks =
    " mask attn_mask attention_mask causal_mask attn_bias attention_bias position_bias ";

/// The numbers of a companion in that layer, when it has an axis of layers as the stages have.
Tensor read_beside(const TensorFile& file, const TensorInfo& info, const LayerOf& layer,
                   const core::Token& progress) {
  const std::size_t n_axes = info.shape.size();
  const bool has_layers = layer.n > 0 && n_axes > 0 && n_axes != 2 && info.shape[0] == layer.n;
  return file.read(info.name, has_layers ? formats::Shape{layer.index} : formats::Shape(), progress);
}

/// What a mask does to one sequence and head.
struct MaskOf {
  arma::mat visible;         ///< of 0 and 1
  arma::mat added;           ///< what it adds to scores that it does not hide
  bool adds_others = false;  ///< that is not 0 throughout
};

/// How many queries that see a key at all see the one in their own place, of how many.
struct OwnKeys {
  std::size_t seen = 0, of = 0;
  /// Whether this is so of a larger share of them.
  bool is_more_than(const OwnKeys& other) const {
    return seen * std::max<std::size_t>(1, other.of) > other.seen * std::max<std::size_t>(1, of);
  }
};

/// Places are counted from the first key, or so that the last query has the last key.
OwnKeys own_keys(const std::vector<arma::mat>& all, double shown, bool from_last) {
  OwnKeys own;
  for (const arma::mat& m : all)
    for (arma::uword i = 0; i < m.n_rows; ++i) {
      if (!arma::any(m.row(i) == shown)) continue;
      const auto place =
          static_cast<std::int64_t>(i) +
          (from_last ? static_cast<std::int64_t>(m.n_cols) - static_cast<std::int64_t>(m.n_rows) : 0);
      const bool is_there = place >= 0 && place < static_cast<std::int64_t>(m.n_cols);
      ++own.of;
      own.seen += is_there && m(i, static_cast<arma::uword>(place)) == shown;
    }
  return own;
}

/// Whether 1 hides: a query would see nothing otherwise, and those that would see something not themselves.
///
/// Queries that are padding see nothing either way round, so that this alone says nothing.
bool is_turned(const std::vector<arma::mat>& all) {
  const auto sees_nothing = [](const arma::mat& m) {
    return arma::any(arma::vectorise(arma::all(m == 0, 1)));
  };
  if (std::ranges::none_of(all, sees_nothing)) return false;
  for (const bool from_last : {true, false})
    if (own_keys(all, 0, from_last).is_more_than(own_keys(all, 1, from_last))) return true;
  return false;
}

/// Whether the numbers show and hide by being 1 and 0, one way round or the other.
bool is_of_ones(const std::vector<arma::mat>& all, bool is_boolean, bool is_bias) {
  if (is_boolean || is_bias) return is_boolean;
  const auto is_known = [](const arma::mat& m) { return arma::all(arma::vectorise(m == 0 || m == 1)); };
  const auto has_one = [](const arma::mat& m) { return arma::any(arma::vectorise(m) == 1); };
  return std::ranges::all_of(all, is_known) && std::ranges::any_of(all, has_one);
}

/// What adding the numbers does.
MaskOf added(const arma::mat& numbers) {
  MaskOf mask{arma::mat(arma::size(numbers), arma::fill::ones), numbers};
  for (arma::uword k = 0; k < numbers.n_elem; ++k) {
    if (numbers[k] <= as_good_as_masked)
      mask.visible[k] = mask.added[k] = 0;
    else
      mask.adds_others |= numbers[k] != 0;
  }
  return mask;
}

/// One matrix of n_queries × n_keys for each head or sequence, or none when it does not fit.
std::vector<arma::mat> spread(const Tensor& tensor, const attention::Model& model) {
  std::vector<arma::mat> all;
  if (tensor.numbers.empty() || tensor.shape.empty()) return all;
  if (tensor.shape.size() < 3)
    all = {formats::matrix(tensor)};
  else
    all = formats::matrices(tensor);
  const std::size_t n_queries = model.n_tokens(), n_keys = model.n_keys(), n = model.sequences.size();
  if (tensor.shape.size() == 2 && all[0].n_rows == n && n != n_queries && n > 1) {  // of each sequence's keys
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

void lack(Account& account, const char* name, const TensorInfo& info) {
  const auto& feature = formats::checkpoints::feature_named(name);
  account.not_supported.push_back(
      {feature.name, std::string(feature.words) + " (" + tensor_words(info) + ")"});
}

/// Hides keys of each sequence where the masks are as many and differ in whole columns, as of padding; what
/// is left of them is the same for all and hides cells of visible.
bool apply_padding(const std::vector<arma::mat>& all, attention::Model& model, arma::mat& visible) {
  if (all.size() != model.sequences.size()) return false;
  arma::mat common = all[0];
  for (const arma::mat& each : all) common = arma::max(common, each);
  std::vector<std::vector<std::size_t>> hidden(all.size());
  for (std::size_t s = 0; s < all.size(); ++s)
    for (arma::uword j = 0; j < all[s].n_cols; ++j) {
      const bool is_hidden = arma::all(all[s].col(j) == 0);
      if (!is_hidden && !arma::all(all[s].col(j) == common.col(j))) return false;
      if (is_hidden) hidden[s].push_back(j);
    }
  model.mask.hidden_keys = std::move(hidden);
  visible %= common;
  return true;
}

bool are_same(const std::vector<arma::mat>& all) {
  return std::ranges::all_of(all,
                             [&](const arma::mat& m) { return arma::all(arma::vectorise(m == all[0])); });
}

/// Adds numbers to the scores, one matrix for all heads or one for each, if sequences have the same; where
/// heads hide other cells, −∞ is added there.
bool apply_bias(const std::vector<MaskOf>& all, Imported& result, arma::mat& visible) {
  attention::Model& model = result.model;
  std::vector<arma::mat> shown, numbers;
  for (const MaskOf& one : all) shown.push_back(one.visible), numbers.push_back(one.added);
  const bool hides_the_same = are_same(shown);
  if (!hides_the_same)
    for (std::size_t k = 0; k < all.size(); ++k)
      numbers[k].elem(arma::find(shown[k] == 0)).fill(-arma::datum::inf);
  if (are_same(numbers)) {
    numbers.resize(1);
  } else {
    const std::size_t n = model.n_heads;
    if (numbers.size() % n != 0) return false;
    for (std::size_t k = n; k < numbers.size(); ++k)
      if (!arma::all(arma::vectorise(numbers[k] == numbers[k % n]))) return false;
    // As many as heads may as well be one for each sequence.
    if (numbers.size() == n && model.sequences.size() == n && n > 1) return false;
    numbers.resize(n);
  }
  for (const arma::mat& each : numbers) {
    const bool is_number = arma::all(arma::vectorise(each) < arma::datum::inf);  // which NaN is not either
    if (!is_number) return false;
  }
  if (hides_the_same) visible %= shown[0];
  model.additions.score_bias.clear();
  for (arma::mat& each : numbers) model.additions.score_bias.emplace_back(std::move(each));
  return true;
}

enum class Taken { no, as_mask, as_bias };

/// Hides cells of visible as a mask says, and adds what else it holds to the scores, or says why not.
Taken apply_mask(const Tensor& tensor, Imported& result, arma::mat& visible) {
  const auto all = spread(tensor, result.model);
  if (all.empty()) {
    result.account.assumed.push_back(tensor_words(tensor) + " is no mask, as it does not fit");
    return Taken::no;
  }
  const bool of_ones =
      is_of_ones(all, tensor.dtype == formats::Dtype::boolean, tensor.name.ends_with("bias"));
  const bool turned = of_ones && is_turned(all);
  std::vector<MaskOf> meant;
  std::vector<arma::mat> shown;
  for (const arma::mat& each : all) {
    meant.push_back(of_ones ? MaskOf{turned ? arma::mat(1 - each) : each, {}} : added(each));
    shown.push_back(meant.back().visible);
  }
  if (std::ranges::any_of(meant, &MaskOf::adds_others)) {
    const bool is_first = result.model.additions.score_bias.empty();
    if (is_first && apply_bias(meant, result, visible)) return Taken::as_bias;
    return lack(result.account, "bias", tensor), Taken::no;
  }
  if (are_same(shown))
    visible %= shown[0];
  else if (!apply_padding(shown, result.model, visible))
    return lack(result.account, "mask", tensor), Taken::no;
  if (turned)
    result.account.assumed.push_back("1 in " + tensor.name + " hides, as else a query would see nothing");
  else if (of_ones)
    result.account.used.push_back("1 in " + tensor.name + " shows");
  return Taken::as_mask;
}

/// Whether the causal rule hides what the mask does, with the queries at the last of the keys or the first.
bool is_causal(attention::Model& model, const arma::mat& visible) {
  attention::Mask& mask = model.mask;
  mask.causal = true;
  for (const auto align : {attention::MaskAlignment::last, attention::MaskAlignment::first}) {
    mask.align = align;
    arma::mat rule(visible.n_rows, visible.n_cols);
    for (std::size_t i = 0; i < visible.n_rows; ++i)
      for (std::size_t j = 0; j < visible.n_cols; ++j)
        rule(i, j) = static_cast<std::int64_t>(j) <= attention::place_of_query(model, i);
    if (arma::all(arma::vectorise(rule == visible))) return true;
  }
  mask.causal = false;
  mask.align = {};
  return false;
}

void put_mask(attention::Model& model, const arma::mat& visible, const std::string& place) {
  if (arma::all(arma::vectorise(visible) == 1) || is_causal(model, visible)) return;
  const arma::uvec hidden = arma::find(visible.t() == 0);  // row by row
  if (hidden.n_elem > most_cells)
    throw Error(place + "expected at most " + std::to_string(most_cells) + " hidden cells, got " +
                std::to_string(hidden.n_elem));
  for (const arma::uword k : hidden)
    model.mask.cells.push_back({k / visible.n_cols, k % visible.n_cols, false});
}

bool apply_scale(const Tensor& tensor, Imported& result) {
  attention::Model& model = result.model;
  if (tensor.numbers.size() != 1 || !std::isfinite(tensor.numbers[0])) return false;
  const double number = tensor.numbers[0], root = std::sqrt(static_cast<double>(model.d_head()));
  const bool divides = root > 1 && std::abs(number - root) <= 1e-3 * root;
  model.scale = {attention::ScaleRule::factor, divides ? 1 / number : number};
  if (divides)
    result.account.assumed.push_back("scores are divided by " + tensor.name + ", which is √" +
                                     std::to_string(model.d_head()));
  return true;
}

}  // namespace

MaskAndScale mask_and_scale_in(const TensorFile& file, const std::string& layer) {
  MaskAndScale found;
  for (const TensorInfo& info : file.tensors()) {
    const std::size_t last = info.name.find_last_of("./");
    const std::string owner = last == info.name.npos ? "" : info.name.substr(0, last),
                      name = text::lower(info.name.substr(last == info.name.npos ? 0 : last + 1));
    if (info.dtype == formats::Dtype::text || (!owner.empty() && owner != layer)) continue;
    if (is_one_of(name, names_of_scales)) found.scale = &info;
    if (name == "is_causal" || name == "causal") found.is_causal = &info;
    if (is_one_of(name, names_of_masks)) found.masks.push_back(&info);
  }
  return found;
}

std::vector<std::string> apply_mask_and_scale(const TensorFile& file, const MaskAndScale& beside,
                                              const LayerOf& layer, Imported& result,
                                              const core::Token& progress) {
  attention::Model& model = result.model;
  Account& account = result.account;
  std::vector<std::string> used;
  if (model.given.find(Stage::weights) || model.given.find(Stage::masked_scores)) return used;
  const auto note = [&](const TensorInfo& info, const char* as) {
    used.push_back(info.name);
    account.used.push_back(tensor_words(info) + " as " + as);
  };
  const bool scales = !model.given.find(Stage::scaled_scores);
  const bool is_scaled =
      scales && beside.scale && apply_scale(read_beside(file, *beside.scale, layer, progress), result);
  if (is_scaled) note(*beside.scale, "the scale");
  if (scales && !is_scaled && model.scale.rule != attention::ScaleRule::factor)
    account.assumed.push_back(scale_words(model));

  arma::mat visible(model.n_tokens(), model.n_keys(), arma::fill::ones);
  std::size_t n_said = 0;
  if (beside.is_causal) {
    const Tensor tensor = read_beside(file, *beside.is_causal, layer, progress);
    if (tensor.numbers.size() == 1) {
      note(*beside.is_causal, "whether it is causal");
      ++n_said;
      for (std::size_t i = 0; tensor.numbers[0] != 0 && i < visible.n_rows; ++i)
        for (std::size_t j = i + 1; j < visible.n_cols; ++j) visible(i, j) = 0;  // as PyTorch does
    }
  }
  for (const TensorInfo* info : beside.masks) {
    const Taken taken = apply_mask(read_beside(file, *info, layer, progress), result, visible);
    if (taken == Taken::no) continue;
    note(*info, taken == Taken::as_mask ? "the mask" : "a bias of the scores");
    if (taken == Taken::as_bias && model.given.find(Stage::scaled_scores))
      account.assumed.push_back("that the scores are still without " + info->name);
    ++n_said;
  }
  put_mask(model, visible, file.place());
  if (n_said == 0) account.assumed.push_back("not causal: every key is seen");
  return used;
}

}  // namespace core::importing
