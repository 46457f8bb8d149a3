#include "core/importing/companions.hpp"

#include <algorithm>
#include <cmath>

#include "core/attention/visible.hpp"
#include "core/error.hpp"
#include "core/formats/checkpoints/kinds.hpp"
#include "core/text/ascii.hpp"

namespace core::importing {
namespace {

using attention::Stage;
using formats::Tensor;
using formats::TensorFile;
using formats::TensorInfo;

constexpr double as_good_as_hidden = -1e4;  // what people add instead of −inf is at least as low
constexpr std::size_t most_cells = std::size_t{1} << 22;

bool is_one_of(const std::string& name, std::string_view words) {
  return words.find(" " + name + " ") != words.npos;
}

constexpr const char* names_of_scales = " scale scaling softmax_scale sm_scale scale_factor ";
constexpr const char* names_of_masks =
    " mask attn_mask attention_mask causal_mask attn_bias attention_bias position_bias ";

/// The numbers of a companion in that layer, when it has an axis of layers as the stages have.
Tensor read_companion(const TensorFile& file, const TensorInfo& info, const LayerOf& layer,
                      const core::Token& progress) {
  const std::size_t n_axes = info.shape.size();
  const bool has_layers = layer.n > 0 && n_axes > 0 && n_axes != 2 && info.shape[0] == layer.n;
  return file.read(info.name, has_layers ? formats::Shape{layer.index} : formats::Shape(), progress);
}

/// What a mask does to one sequence and head.
struct MaskOf {
  arma::mat visible;         ///< of 0 and 1
  bool adds_others = false;  ///< it adds numbers that neither leave scores nor hide them
  bool is_turned = false;    ///< 1 hides
};

bool has_a_row_of(const arma::mat& m, double number) {
  for (arma::uword i = 0; i < m.n_rows; ++i)
    if (arma::all(m.row(i) == number)) return true;
  return false;
}

MaskOf meaning(const arma::mat& numbers, bool is_boolean, bool is_bias) {
  const bool of_0_and_1 = arma::all(arma::vectorise(numbers == 0 || numbers == 1));
  if (is_boolean || (!is_bias && of_0_and_1 && arma::any(arma::vectorise(numbers) == 1))) {
    const bool turned = has_a_row_of(numbers, 0) && !has_a_row_of(numbers, 1);
    return {turned ? arma::mat(1 - numbers) : numbers, false, turned};
  }
  MaskOf mask{arma::mat(numbers.n_rows, numbers.n_cols, arma::fill::ones)};
  for (arma::uword k = 0; k < numbers.n_elem; ++k) {
    if (numbers[k] <= as_good_as_hidden)
      mask.visible[k] = 0;
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
  const auto& absence = formats::checkpoints::absence_named(name);
  account.left_out.push_back({absence.name, std::string(absence.words) + " (" + tensor_words(info) + ")"});
}

/// Hides keys of each sequence where the masks are as many and have the same in every row, as of padding.
bool apply_padding(const std::vector<arma::mat>& all, attention::Model& model) {
  if (all.size() != model.sequences.size()) return false;
  std::vector<std::vector<std::size_t>> hidden(all.size());
  for (std::size_t s = 0; s < all.size(); ++s)
    for (arma::uword j = 0; j < all[s].n_cols; ++j) {
      const arma::vec column = all[s].col(j);
      if (!arma::all(column == column[0])) return false;
      if (column[0] == 0) hidden[s].push_back(j);
    }
  model.mask.hidden_keys = std::move(hidden);
  return true;
}

/// Hides cells of visible as a mask says, or says why not.
bool apply_mask(const Tensor& tensor, Imported& result, arma::mat& visible) {
  const auto all = spread(tensor, result.model);
  if (all.empty()) {
    result.account.assumed.push_back(tensor_words(tensor) + " is no mask, as it does not fit");
    return false;
  }
  const bool is_boolean = tensor.dtype == formats::Dtype::boolean;
  const bool is_bias = tensor.name.ends_with("bias");
  const MaskOf first = meaning(all[0], is_boolean, is_bias);
  std::vector<arma::mat> shown;
  for (const arma::mat& each : all) {
    MaskOf one = meaning(each, is_boolean, is_bias);
    if (one.adds_others) return lack(result.account, "bias", tensor), false;
    shown.push_back(std::move(one.visible));
  }
  const bool same = std::ranges::all_of(
      shown, [&](const arma::mat& each) { return arma::all(arma::vectorise(each == shown[0])); });
  if (same)
    visible %= shown[0];
  else if (!apply_padding(shown, result.model))
    return lack(result.account, "mask", tensor), false;
  if (first.is_turned)
    result.account.assumed.push_back("1 in " + tensor.name + " hides, as else a query would see nothing");
  else if (is_boolean || arma::any(arma::vectorise(all[0]) == 1))
    result.account.used.push_back("1 in " + tensor.name + " shows");
  return true;
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

Companions companions_in(const TensorFile& file, const std::string& layer) {
  Companions found;
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

std::vector<std::string> apply_companions(const TensorFile& file, const Companions& companions,
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
  const bool is_scaled = scales && companions.scale &&
                         apply_scale(read_companion(file, *companions.scale, layer, progress), result);
  if (is_scaled) note(*companions.scale, "the scale");
  if (scales && !is_scaled && model.scale.rule != attention::ScaleRule::factor)
    account.assumed.push_back(scale_words(model));

  arma::mat visible(model.n_tokens(), model.n_keys(), arma::fill::ones);
  std::size_t n_said = 0;
  if (companions.is_causal) {
    const Tensor tensor = read_companion(file, *companions.is_causal, layer, progress);
    if (tensor.numbers.size() == 1) {
      note(*companions.is_causal, "whether it is causal");
      ++n_said;
      for (std::size_t i = 0; tensor.numbers[0] != 0 && i < visible.n_rows; ++i)
        for (std::size_t j = i + 1; j < visible.n_cols; ++j) visible(i, j) = 0;  // as PyTorch does
    }
  }
  for (const TensorInfo* info : companions.masks) {
    if (!apply_mask(read_companion(file, *info, layer, progress), result, visible)) continue;
    note(*info, "the mask");
    ++n_said;
  }
  put_mask(model, visible, file.place());
  if (n_said == 0) account.assumed.push_back("not causal: every key is seen");
  return used;
}

}  // namespace core::importing
