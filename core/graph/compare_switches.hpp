#pragma once

#include <span>
#include <string>

#include "core/graph/model.hpp"

namespace core::compare {

/// A switch of the model that people ask about: what would it be like the other way?
struct Switch {
  const char* name;   ///< in landmarks: "mask"
  const char* title;  ///< "mask on against off"
  const char* about;  ///< one sentence on what the other state is
  /// The model with the switch the other way; every other number is the same.
  attention::Model (*flipped)(const attention::Model&);
  /// The state of the switch in words: "mask off".
  std::string (*state)(const attention::Model&);
};

/// Mask, scale, dropout and the merging of heads.
std::span<const Switch> switches();

}  // namespace core::compare
