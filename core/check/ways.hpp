#pragma once

#include <functional>
#include <vector>

#include "core/check/reading.hpp"
#include "core/mistakes/mistakes.hpp"

namespace core::check {

/// One way in which mistakes of one kind are made; the table of mistakes has the plainest, people find
/// others.
struct Way {
  std::vector<const mistakes::Mistake*> mistakes;  ///< what is done wrong, one or a few alike
  std::function<Model(const Model&)> made;
  Stage first;               ///< no earlier stage can change
  bool is_rounding = false;  ///< it makes numbers coarser, which is judged otherwise
};

/// All ways that change this model, in the order of the stages that they change; what the tensors tell of a
/// mask's large negative number is used.
std::vector<Way> ways_for(const Model& model, const std::vector<Theirs>& theirs);

}  // namespace core::check
