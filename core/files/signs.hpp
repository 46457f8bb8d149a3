#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/files/layers.hpp"

/// What the names of a checkpoint's tensors tell of a layer.
namespace core::formats::checkpoints {

/// The side of a model of two, by the name of a tensor in small letters; towers for images are encoders.
enum class Side { none, encoder, decoder };
Side side_of(const std::string& name);

/// Whether a layer's keys are of another sequence than its queries.
bool is_cross(std::span<const TensorInfo> tensors, const Layer& layer);

/// Whether a norm stands before the attention in its block.
bool has_norm_before(std::span<const TensorInfo> tensors, const Layer& layer);

/// A square tensor beside the projections that is called a mask, or nullptr.
const TensorInfo* mask_beside(std::span<const TensorInfo> tensors, const Layer& layer);

/// The names of absences that tensors tell of, perhaps several times.
std::vector<const char*> absences_by_tensors(std::span<const TensorInfo> tensors, const Layer& layer,
                                             bool is_cross);

/// Whether a tensor is of the layer itself, of all layers that are stacked with it, or of one of them.
bool shares_stack(const std::string& tensor, const Layer& layer);

/// The number that stands first in a layer's prefix: 3 of "h.3.attn."; 0 when there is none.
std::size_t number_of(const Layer& layer);

}  // namespace core::formats::checkpoints
