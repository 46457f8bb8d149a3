#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/files/families.hpp"
#include "core/files/tensor.hpp"

/// Attention in a file of tensors, as far as their names tell.
namespace core::formats::checkpoints {

/// Where the numbers of one projection are in a file.
struct Source {
  std::vector<std::string> weights;   ///< tensors side by side along d_out: one, or one for each head
  std::vector<std::string> biases;    ///< as many, or none
  bool out_by_in = false;             ///< rows are outputs, as torch.nn.Linear keeps them; else it is x·W
  std::size_t part = 0, n_parts = 1;  ///< of d_out: queries, keys, values are 0, 1, 2 of 3
  std::size_t bias_part = 0, n_bias_parts = 1;  ///< the same of the bias
  Fused fused = Fused::side_by_side;            ///< how the parts lie
  bool head_first = false;  ///< a tensor of three dimensions, of which the first counts heads
  friend bool operator==(const Source&, const Source&) = default;
};

/// Where all projections of one attention are.
struct Mapping {
  Source query, key, value;
  std::optional<Source> output;
  friend bool operator==(const Mapping&, const Mapping&) = default;
};

/// One attention found in a file.
struct Layer {
  std::string prefix;  ///< of its tensors' names: "h.2.attn."
  const Naming* naming;
  Mapping mapping;
  std::size_t n_heads = 0;  ///< when the names tell it, else 0
};

/// Every attention in a file whose naming is known, or that is one class for each head, in the order of the
/// numbers in their names; cross-attention comes last.
std::vector<Layer> find_layers(std::span<const TensorInfo> tensors);

/// The layer that a person means by a number, counted from 0, or by its prefix.
///
/// Throws core::Error, "PLACEexpected …", naming what there is.
const Layer& choose_layer(std::span<const Layer> layers, const std::string& chosen, const std::string& place);

/// The number that comes first in a layer's prefix: 3 of "h.3.attn."; 0 when there is none.
std::size_t number_of(const Layer& layer);

/// The part of a model of two, by the name of a tensor in small letters; towers for images are encoders.
enum class Side { none, encoder, decoder };
Side side_of(const std::string& name);

/// Whether a layer's keys are of another sequence than its queries.
bool is_cross(std::span<const TensorInfo> tensors, const Layer& layer);

/// Whether a norm comes before the attention in its block.
bool has_norm_before(std::span<const TensorInfo> tensors, const Layer& layer);

/// A square tensor beside the projections that is called a mask, or nullptr.
const TensorInfo* mask_beside(std::span<const TensorInfo> tensors, const Layer& layer);

/// The names of features that tensors tell of, perhaps several times.
std::vector<const char*> features_by_tensors(std::span<const TensorInfo> tensors, const Layer& layer,
                                             bool is_cross);

/// Whether a tensor is of the layer itself, of all layers that are stacked with it, or of one of them.
bool shares_stack(const std::string& tensor, const Layer& layer);

/// Throws core::Error, "FILE: TENSOR: …", when the weights of a file are quantized: whole numbers that mean
/// something with their scales alone, as GPTQ, AWQ and bitsandbytes keep them. configured is what config.json
/// calls it, or "".
void refuse_quantized(const TensorFile& file, const std::string& configured);

}  // namespace core::formats::checkpoints
