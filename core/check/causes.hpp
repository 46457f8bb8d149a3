#pragma once

#include <string>
#include <vector>

#include "core/base/token.hpp"
#include "core/check/agreement.hpp"
#include "core/check/ways.hpp"

namespace core::check {

/// Mistakes that, made together, give every tensor within the tolerance.
struct Explanation {
  std::vector<std::string> causes;                 ///< as the table of mistakes names them, each once
  std::vector<const mistakes::Mistake*> mistakes;  ///< what they are in particular
  Model model;                                     ///< the model with them
  std::vector<std::string> details;  ///< "blocks of 4 keys": sizes, of which each explains the tensors
};

/// All single causes that explain every tensor; when there is none, all pairs that do, a rounding among them.
///
/// agreeing[k] is the reading of theirs[k] that agrees with the right model, or nullptr; there must be one of
/// these. Where a tensor lacks a reading only what gives other shapes is tried. Calls goes_on() now and then,
/// and gives up, with what it has found, when that is false.
std::vector<Explanation> find_causes(const Computed& right, const std::vector<Theirs>& theirs,
                                     const std::vector<const Reading*>& agreeing, const Tolerance& tolerance,
                                     const core::Token& token);

}  // namespace core::check
