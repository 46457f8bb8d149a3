#include "core/importing/embeddings.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/graph/limits.hpp"
#include "core/importing/first_line.hpp"
#include "core/importing/import_parts.hpp"

namespace core::importing {
namespace {

using formats::Tensor;
using formats::TensorFile;
using formats::TensorInfo;

constexpr std::size_t drawn_tokens = 8;
constexpr std::uint32_t drawn_seed = 123;

/// What is called so stands before the layer norm, and what is called as these after it.
constexpr std::array names_before_the_norm{"embeddings",    "embedding",     "embed",     "emb",
                                           "inputs_embeds", "hidden_states", "resid_pre", "wte"};
constexpr std::array names_after_the_norm{"ln_1", "ln1", "norm1", "norm", "normalized", "input_layernorm"};
constexpr std::array names_of_embeddings{"embeddings", "x",    "inputs", "input",        "hidden_states",
                                         "embedding",  "ln_1", "embed",  "inputs_embeds"};

[[noreturn]] void fail(const TensorFile& file, const std::string& what) {
  throw Error(file.place() + what);
}

bool can_be_embeddings(const TensorInfo& info) {
  return info.dtype != formats::Dtype::text && (info.shape.size() == 2 || info.shape.size() == 3);
}

/// Names a few of a file's tensors, to choose among.
std::string some_names(const TensorFile& file) {
  const auto& all = file.tensors();
  const std::span<const TensorInfo> first(all.begin(), std::min<std::size_t>(all.size(), 6));
  return text::joined(first, ", ", &TensorInfo::name) + (all.size() > first.size() ? " …" : "");
}

const TensorInfo& find_embeddings(const TensorFile& file, const std::string& name) {
  if (!name.empty()) return file.info(name);
  if (const TensorInfo* info = usual_embeddings(file)) return *info;
  fail(file, "expected a tensor called embeddings, or one to be chosen among " + some_names(file));
}

/// The last part of a tensor's name: "ln_1" of "L2.ln_1".
std::string last_part(const std::string& name) {
  return name.substr(name.find_last_of("./") + 1);
}

bool is_named(const TensorInfo& info, std::span<const char* const> names) {
  return std::ranges::find(names, last_part(info.name)) != names.end();
}

/// What enters attention is what comes out of the norm; a tensor may be either.
void note_norm(const TensorInfo& info, bool norm_before, Account& account) {
  if (!norm_before || is_named(info, names_after_the_norm)) return;
  if (is_named(info, names_before_the_norm))
    account.assumed.push_back(info.name +
                              " enters attention as it is, though it seems to stand before the layer norm, "
                              "which is not computed");
  else
    account.assumed.push_back(info.name + " is what enters attention, after the layer norm");
}

arma::mat drawn_embeddings(std::size_t d_in) {
  const std::vector<float> numbers = random::Generator(drawn_seed).normal(drawn_tokens * d_in);
  return arma::conv_to<arma::mat>::from(arma::fmat(numbers.data(), d_in, drawn_tokens)).t();
}

}  // namespace

const TensorInfo* usual_embeddings(const TensorFile& file) {
  for (const char* known : names_of_embeddings)
    if (const TensorInfo* info = file.find(known); info && can_be_embeddings(*info)) return info;
  const auto& all = file.tensors();
  const auto first = std::ranges::find_if(all, can_be_embeddings);
  const bool is_only_one =
      first != all.end() && std::find_if(first + 1, all.end(), can_be_embeddings) == all.end();
  return is_only_one ? &*first : nullptr;
}

std::vector<std::string> tokens_in(const TensorFile& file, std::size_t n_tokens,
                                   const core::Token& progress) {
  const TensorInfo* texts = file.find("tokens");
  if (texts && texts->dtype == formats::Dtype::text && texts->shape == formats::Shape{n_tokens})
    return file.read("tokens", {}, progress).texts;
  return attention::numbered_tokens(n_tokens);
}

std::vector<attention::Sequence> embeddings_in(const TensorFile& file, const std::string& name,
                                               const core::Token& progress) {
  const TensorInfo& info = find_embeddings(file, name);
  if (!can_be_embeddings(info))
    fail(file, info.name + ": expected embeddings [tokens, columns] or a batch of them, got " +
                   formats::shape_text(info.shape));
  if (formats::count_of(info.shape) == std::uint64_t{0})  // which can claim any number of tokens
    fail(file,
         info.name + ": expected at least one number, got the shape " + formats::shape_text(info.shape));
  const std::size_t n_tokens = info.shape[info.shape.size() - 2], n_columns = info.shape.back();
  const std::size_t n_sequences = info.shape.size() == 3 ? info.shape.front() : 1;
  // Before numbers are read, and as many names are made.
  attention::require_size({.n_sequences = n_sequences, .n_tokens = n_tokens, .d_model = n_columns},
                          file.place());
  const Tensor tensor = file.read(info.name, {}, progress);
  const auto tokens =
      tensor.row_labels.size() == n_tokens ? tensor.row_labels : tokens_in(file, n_tokens, progress);
  std::vector<attention::Sequence> sequences;
  for (const arma::mat& embeddings : formats::matrices(tensor)) sequences.push_back({tokens, embeddings});
  return sequences;
}

std::vector<attention::Sequence> embeddings_for(const TensorFile& checkpoint, const Choices& choices,
                                                std::size_t d_in, bool norm_before, Imported& result,
                                                const core::Token& progress) {
  if (choices.embeddings.empty() && choices.embeddings_tensor.empty()) {
    result.notes.push_back("No embeddings were given: " + std::to_string(drawn_tokens) +
                           " tokens of standard normal numbers (seed 123) stand for them.");
    return {{attention::numbered_tokens(drawn_tokens), drawn_embeddings(d_in)}};
  }
  const bool is_other = !choices.embeddings.empty();
  const TensorFile file = is_other ? formats::open_tensors(choices.embeddings, progress) : checkpoint;
  auto sequences = embeddings_in(file, choices.embeddings_tensor, progress);
  const std::size_t n_columns = sequences.front().embeddings->n_cols;
  if (n_columns != d_in)
    fail(file, "expected embeddings of " + std::to_string(d_in) +
                   " columns, as many as the projections have inputs, got " + std::to_string(n_columns));
  const TensorInfo& info = find_embeddings(file, choices.embeddings_tensor);
  const std::string from = is_other ? " of " + file.path().filename().string() : "";
  result.account.used.push_back(tensor_words(info) + from + " as embeddings");
  note_norm(info, norm_before, result.account);
  if (is_other) note_counting_line(file, file.read(info.name, {}, progress), {}, result.account);
  return sequences;
}

Imported import_embeddings(const TensorFile& file, const Choices& choices, const core::Token& progress) {
  const TensorInfo* info =
      choices.embeddings_tensor.empty() ? usual_embeddings(file) : &file.info(choices.embeddings_tensor);
  if (!info)
    fail(file,
         "expected a session, a checkpoint of a known layout, stages of attention (weights, scores, or "
         "queries and keys) or embeddings, and none of the names tells which these are: " +
             some_names(file));
  if (!choices.layer.empty() && choices.given.empty())
    fail(file, "expected no layer to be chosen, as there are none in it, got \"" + choices.layer + "\"");
  Imported result;
  Account& account = result.account;
  result.model.sequences = embeddings_in(file, info->name, progress);
  result.model.n_heads = choices.n_heads.value_or(1);
  result.notes.push_back(
      "There are no projections of a known layout in the file: queries, keys and values are the embeddings.");
  const Tensor whole = file.read(info->name, {}, progress);
  account.used.push_back(tensor_words(*info) + " as embeddings");
  if (!whole.row_labels.empty()) account.used.push_back("the first column as tokens");
  if (choices.n_heads) account.used.push_back(text::counted(*choices.n_heads, "head") + ", as said");
  if (choices.embeddings_tensor.empty() && !is_named(*info, names_of_embeddings))
    account.assumed.push_back("that " + info->name + " is embeddings");
  if (!choices.n_heads) account.assumed.push_back("1 head");
  account.assumed.push_back("causal");
  attention::require_within_limits(result.model, file.place());
  account.assumed.push_back(scale_words(result.model));
  note_counting_line(file, whole, choices.first_line_is_names, account);
  note_unused(account, file, {info->name}, "");
  return result;
}

}  // namespace core::importing
