#include "core/importing/embeddings.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "core/error.hpp"
#include "core/formats/readers/tensor_formats.hpp"
#include "core/random/generator.hpp"
#include "core/text/words.hpp"

namespace core::importing {
namespace {

using formats::Tensor;
using formats::TensorFile;
using formats::TensorInfo;

constexpr std::size_t drawn_tokens = 8;
constexpr std::uint32_t drawn_seed = 123;

constexpr std::array names_of_embeddings{"embeddings", "x",    "inputs", "input",        "hidden_states",
                                         "embedding",  "ln_1", "embed",  "inputs_embeds"};

[[noreturn]] void fail(const TensorFile& file, const std::string& what) {
  throw Error(file.place() + what);
}

bool can_be_embeddings(const TensorInfo& info) {
  return info.dtype != formats::Dtype::text && (info.shape.size() == 2 || info.shape.size() == 3);
}

const TensorInfo& find_embeddings(const TensorFile& file, const std::string& name) {
  if (!name.empty()) return file.info(name);
  if (const TensorInfo* info = usual_embeddings(file)) return *info;
  const auto& all = file.tensors();
  const std::span<const TensorInfo> first(all.begin(), std::min<std::size_t>(all.size(), 6));
  fail(file, "expected a tensor called embeddings, or one to be chosen among " +
                 text::joined(first, ", ", &TensorInfo::name) + (all.size() > first.size() ? " …" : ""));
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
  const Tensor tensor = file.read(info.name, {}, progress);
  if (tensor.numbers.empty())  // a file of no numbers can claim any number of tokens
    fail(file,
         info.name + ": expected at least one number, got the shape " + formats::shape_text(info.shape));
  const std::size_t n_tokens = tensor.shape[tensor.shape.size() - 2];
  const auto tokens =
      tensor.row_labels.size() == n_tokens ? tensor.row_labels : tokens_in(file, n_tokens, progress);
  std::vector<attention::Sequence> sequences;
  for (const arma::mat& embeddings : formats::matrices(tensor)) sequences.push_back({tokens, embeddings});
  return sequences;
}

std::vector<attention::Sequence> embeddings_for(const TensorFile& checkpoint, const Choices& choices,
                                                std::size_t d_in, std::vector<std::string>& notes,
                                                const core::Token& progress) {
  if (choices.embeddings.empty() && choices.embeddings_tensor.empty()) {
    notes.push_back("No embeddings were given: " + std::to_string(drawn_tokens) +
                    " tokens of standard normal numbers (seed 123) stand for them.");
    return {{attention::numbered_tokens(drawn_tokens), drawn_embeddings(d_in)}};
  }
  const TensorFile file =
      choices.embeddings.empty() ? checkpoint : formats::open_tensors(choices.embeddings, progress);
  auto sequences = embeddings_in(file, choices.embeddings_tensor, progress);
  const std::size_t n_columns = sequences.front().embeddings->n_cols;
  if (n_columns != d_in)
    fail(file, "expected embeddings of " + std::to_string(d_in) +
                   " columns, as many as the projections have inputs, got " + std::to_string(n_columns));
  return sequences;
}

}  // namespace core::importing
