#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/check/bug_search.hpp"
#include "core/check/computed.hpp"
#include "core/graph/injected_bugs.hpp"

namespace core::check {

/// Bugs that together reproduce every tensor within the tolerance.
struct Explanation {
  std::vector<std::string> causes;     ///< their names, each once
  std::vector<const bugs::Bug*> bugs;  ///< these bugs, if all have titles
  Model model;                         ///< with them, or the right model if they override stages
  std::vector<std::string> details;    ///< how the arithmetic differs: "their last digits are cut off"
  /// "the positions of the queries are 4 behind": inferred from the numbers, one per bug.
  std::vector<std::string> sentences = {};
  /// The right model's graph with bugs that a model cannot list.
  std::shared_ptr<const Editing> overriding = nullptr;
};

struct MatchResult;
struct Report;

/// Returns explanations that change shapes of tensors: every other number of heads that divides the model's
/// columns, and no output projection where that changes the width of the output.
std::vector<Explanation> other_shapes(const Model& model);

/// Finds bugs that explain the tensors and adds them to the report, whose readings must be set; adds partial
/// explanations if there are none.
///
/// Some tensor must differ. When comparison.token stops, adds what was found so far.
void find_causes(const Comparison& comparison, const MatchResult& matched, Report& report);

/// Tells what the rounding of tensors in half precision could hide, each number of which agrees; if they
/// differ by more than noise together, the report no longer agrees.
void judge_agreement_in_half(const Comparison& comparison, const MatchResult& matched, Report& report);

/// Returns the model with the bugs of an explanation; those that it cannot list override stages.
Model injected(const Explanation& explanation);

}  // namespace core::check
