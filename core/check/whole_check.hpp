#pragma once

#include <armadillo>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/check/check.hpp"
#include "core/files/tensor.hpp"
#include "core/model/architecture.hpp"
#include "core/model/transformer.hpp"

namespace core::check {

// A whole model against a file of what somebody's own made of the same text.

/// A tensor of a file, or what is at one index of its first axis.
struct DumpTensor {
  std::string name;
  std::optional<std::size_t> index = {};
  /// "hidden_states", "hidden_states[2]".
  std::string words() const { return name + (index ? "[" + std::to_string(*index) + "]" : ""); }
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

/// One layer compared.
struct LayerResult {
  std::optional<TensorResult> entering;  ///< what enters it, where the file has that
  std::optional<Report> attention;       ///< its attention, where the file has tensors of it
};

struct WholeReport {
  std::vector<LayerResult> layers;
  std::optional<TensorResult> leaving, normed, logits;  ///< behind the last layer; a token a row
  std::vector<std::string> left_out;                    ///< with why

  bool agrees() const;
};

/// How a file is to be read and compared.
struct WholeOptions {
  Tolerance tolerance = {};
  const Layout* layout = nullptr;  ///< of the features of heads, or nullptr for whichever fits
  std::map<std::string, std::string> by_hand = {};  ///< stage of a tensor; "" leaves it out
};

/// Compares what a file holds of a pass with the model's own, layer by layer: what enters each, and its
/// attention in all stages that are there.
///
/// A layer is computed from the file's own hidden states where it has them, so that a difference stands where
/// it arises. A search for causes that is stopped leaves the comparison whole. Throws core::Error when the
/// file has nothing to compare or cannot be read, or the text does not fit the model; Stopped when
/// means.progress asks for that.
WholeReport check_whole(const transformer::Transformer& model, const std::vector<std::size_t>& ids,
                        const std::vector<std::string>& tokens, const formats::TensorFile& file,
                        const WholeOptions& options, const transformer::Means& means, const Token& search);

/// The report for people: a table, what was left out, then where the first difference is and what explains
/// it.
std::string whole_report_text(const WholeReport& report);

/// The report as JSON on one line: agrees, first_difference ({layer, stage}, or null), layers (hidden and
/// attention of each, or null), leaving, normed, logits, left_out.
std::string whole_report_json(const WholeReport& report);

}  // namespace core::check
