#pragma once

#include <armadillo>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/check/check.hpp"
#include "core/check/placement.hpp"
#include "core/files/tensor.hpp"
#include "core/model/architecture.hpp"
#include "core/model/transformer.hpp"

namespace core::check {

// Compares a whole model with a file of tensors that a user's own model computed from the same text.

/// A tensor of a file, or one index of its first axis.
struct DumpTensor {
  std::string name;
  std::optional<std::size_t> index = {};
  /// "hidden_states", "hidden_states[2]".
  std::string words() const { return name + (index ? "[" + std::to_string(*index) + "]" : ""); }
};

/// Tensors of a forward pass through a whole model, by name.
struct Dump {
  std::map<std::size_t, DumpTensor> hidden;             ///< [number]: usually of the layer that it enters
  std::optional<DumpTensor> normed;                     ///< output of the last layer after the final norm
  std::optional<DumpTensor> logits;                     ///< n_tokens × n_vocabulary
  std::map<std::size_t, std::set<std::string>> stages;  ///< [number]: tensors of attention of a layer
  std::set<std::string> stacked;           ///< tensors of attention whose first axis counts layers
  std::vector<std::string> left_out = {};  ///< names, and why they were ignored
};

/// Finds the tensors of a pass: "hidden_states.3", "blocks.3.hook_resid_post", "attentions.0", "h.2.attn.q",
/// "logits"; hidden states and attention may have a first axis of layers. Duplicates are ignored with a note.
///
/// by_hand maps tensor names, whose number is the layer, to stages of attention; "" ignores the tensor.
/// Throws core::Error when by_hand names a tensor that does not exist.
Dump find_dump(const formats::TensorFile& file, const transformer::Sizes& sizes,
               const std::map<std::string, std::string>& by_hand);

/// Reads a tensor as a matrix; axes before the last two must have length 1.
///
/// Throws core::Error, "FILE: TENSOR: …", when it has other axes or cannot be read.
arma::mat read_matrix(const formats::TensorFile& file, const DumpTensor& tensor);

/// Comparison of one layer.
struct LayerResult {
  std::optional<TensorResult> entering;  ///< its input, if the file has it
  std::optional<Report> attention;       ///< its attention, if the file has tensors of it
};

struct WholeReport {
  std::vector<LayerResult> layers;
  std::optional<TensorResult> leaving, normed, logits;  ///< after the last layer; one row per token
  std::vector<std::string> left_out;                    ///< tensors that were ignored, and why
  /// How layers and tokens had to be read: "layers are counted from 1"; the names say something else.
  std::string placement = {};
  /// Of the text as placed, and of most tensors of the file; 0 if that is unknown or all agrees.
  std::size_t n_tokens = 0, n_given_tokens = 0;

  /// Whether all numbers agree where the names place them.
  bool agrees() const;
};

/// Options for reading and comparing a file.
struct WholeOptions {
  Tolerance tolerance = {};
  const TensorLayout* layout = nullptr;             ///< of the features of heads; nullptr for any that fits
  std::map<std::string, std::string> by_hand = {};  ///< stage by tensor; "" ignores the tensor
};

/// Compares a file's forward pass with the model's own, layer by layer: the input of each layer, and all
/// given stages of its attention.
///
/// A layer is computed from the file's own hidden states if present, so that a difference appears where it
/// originates. Stopping the search for causes does not affect the comparison. Throws core::Error when the
/// file has nothing to compare or cannot be read, or the text does not fit the model; Stopped when
/// means.progress requests it.
WholeReport check_whole(const transformer::Transformer& model, const std::vector<std::size_t>& ids,
                        const std::vector<std::string>& tokens, const formats::TensorFile& file,
                        const WholeOptions& options, const transformer::CallContext& context,
                        const StopToken& search);

/// Returns the report as text: a table, ignored tensors, then the first difference and its explanation.
std::string whole_report_text(const WholeReport& report);

/// Returns the report as JSON on one line: agrees, first_difference ({layer, stage}, or null), placement,
/// layers (hidden and attention of each, or null), leaving, normed, logits, left_out.
std::string whole_report_json(const WholeReport& report);

}  // namespace core::check
