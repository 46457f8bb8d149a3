#pragma once

#include <bitset>

#include "core/graph/model.hpp"

namespace core::attention {

/// A set of stages; each stands at its place in the order of the computation.
using StageSet = std::bitset<n_stages>;

inline bool contains(const StageSet& set, Stage stage) {
  return set[static_cast<std::size_t>(stage)];
}

/// The stages that a model has.
///
/// A stage is there when it is given, or when all that it is made of is known and the output is made of it:
/// scores that would be computed but do not lead to weights that are given are not there.
StageSet shown_stages(const Model& model);

/// Whether a stage is computed: it is there and not given as a whole.
bool is_computed(const Model& model, Stage stage);

}  // namespace core::attention
