#pragma once

#include <armadillo>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/files/tensor.hpp"
#include "core/model/architecture.hpp"

/// A whole model against a file of what somebody's own made of the same text.
namespace core::check {

/// A tensor of a file, or what is at one index of its first axis.
struct DumpTensor {
  std::string name;
  std::optional<std::size_t> index = {};
};

/// What the tensors of a file hold of a pass through a whole model, by their names.
struct Dump {
  std::map<std::size_t, DumpTensor> hidden;  ///< [layer]: what enters it; n_layers: what leaves the last one
  std::optional<DumpTensor> normed;          ///< what leaves the last one after the norm that follows it
  std::optional<DumpTensor> logits;          ///< the scores of tokens, n_tokens × n_vocabulary
  std::map<std::size_t, std::set<std::string>> stages;  ///< [layer]: tensors of its attention
  std::set<std::string> stacked;           ///< tensors of attention whose first axis counts layers
  std::vector<std::string> left_out = {};  ///< names with why
};

/// What a file holds: "hidden_states.3", "blocks.3.hook_resid_post", "attentions.0", "h.2.attn.q", "logits";
/// hidden states and attention also with a first axis of layers. What is there twice is left out with a word.
///
/// by_hand says which stage of attention a tensor is, whose layer is a number in its name; "" leaves it out.
/// Throws core::Error when it names a tensor that is not there.
Dump dump_in(const formats::TensorFile& file, const transformer::Sizes& sizes,
             const std::map<std::string, std::string>& by_hand);

/// The numbers of a tensor whose axes before the last two are ones.
///
/// Throws core::Error, "FILE: TENSOR: …", when it has other axes or cannot be read.
arma::mat rows_of(const formats::TensorFile& file, const DumpTensor& tensor);

}  // namespace core::check
