#pragma once

#include <span>
#include <string>

#include "core/files/behaviour.hpp"

namespace core::formats::checkpoints {

/// What is known beside the names of tensors.
struct Sources {
  const ConfigPositions& positions;
  const std::string& type;  ///< model_type, or ""
  bool by_config = false;   ///< whether it tells the kind
  std::span<const std::string> left_out;
};

/// Finds what a layer whose kind and sight are known adds to the paper, and what of it is not computed.
void plan_additions(Behaviour& behaviour, std::span<const TensorInfo> tensors, const Layer& layer,
                    const Sources& sources);

}  // namespace core::formats::checkpoints
