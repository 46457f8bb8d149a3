#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/files/config.hpp"
#include "core/files/kinds.hpp"
#include "core/files/layers.hpp"
#include "core/files/planned.hpp"
#include "core/graph/model.hpp"

namespace core::formats::checkpoints {

/// What the attention of a layer does, and what of that is only assumed.
struct Behaviour {
  const Kind* kind = nullptr;  ///< or nullptr when nothing tells it
  Mapping mapping;             ///< of the layer, a fused weight cut as this kind has it
  bool causal = true;
  bool is_cross = false;                     ///< its keys and values are of another sequence
  bool norm_before = false;                  ///< what enters it has gone through a norm
  ConfigHeads heads;                         ///< as far as the configuration tells them
  std::vector<std::string> known, assumed;   ///< a few words each: "causal, as GPT-2 is"
  std::vector<const Absence*> not_computed;  ///< what it does and this program does not
  attention::MaskWindow window;              ///< keys that a query sees at most
  Planned planned;                           ///< what it adds to the paper
};

/// Finds out what a layer of a checkpoint does by its configuration, or else by the names of its tensors.
///
/// What is called in left_out by the name of an absence is not computed even where it could be. Throws
/// core::Error, "PLACETENSOR: …", when a fused weight is laid out in a way that is not known.
Behaviour behaviour_of(std::span<const TensorInfo> tensors, const Layer& layer, const Config& config,
                       const std::string& place, std::span<const std::string> left_out = {});

/// The factor between scores and scaled scores of a layer.
attention::Scale scale_of(const Behaviour& behaviour, const Config& config, const Layer& layer,
                          std::size_t d_head);

}  // namespace core::formats::checkpoints
