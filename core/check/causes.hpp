#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/check/computed.hpp"
#include "core/graph/mistakes.hpp"

namespace core::check {

/// One way in which mistakes of one kind are made; the table of mistakes has the plainest, people find
/// others.
struct Hypothesis {
  std::vector<const mistakes::Mistake*> mistakes;  ///< what is done wrong, one or a few alike
  std::function<Model(const Model&)> made;
  Stage first;              ///< no earlier stage can change
  std::string detail = {};  ///< "blocks of 4 keys": what the table of mistakes leaves open
  bool alone = false;       ///< it is one of many alike, and not tried in pairs
  bool in_tf32 = false;     ///< products are those of trace_in_tf32()
};

/// All that change this model and do not only round, in the order of the stages that they change; what the
/// tensors tell of a mask's large negative number is used.
std::vector<Hypothesis> hypotheses_for(const Model& model, const std::vector<Observed>& observed);

/// Those that give tensors other shapes: every other number of heads that the model's columns can be split
/// into, and an output projection that is left out where the output is of another width then.
std::vector<Hypothesis> shape_hypotheses(const Model& model);

/// Those that make numbers coarser, the finest first; whether tensors are rounded so is judged otherwise.
std::vector<Hypothesis> rounding_hypotheses(const Model& model);

/// Mistakes that, made together, give every tensor within the tolerance.
struct Explanation {
  std::vector<std::string> causes;                 ///< as the table of mistakes names them, each once
  std::vector<const mistakes::Mistake*> mistakes;  ///< what they are in particular
  Model model;                                     ///< the model with them
  std::vector<std::string> details;  ///< "blocks of 4 keys": sizes, of which each explains the tensors
};

/// All single causes that explain every tensor; when there is none, all pairs that do, a rounding among them.
///
/// Not all of the tensors may agree. Where one lacks a reading only what gives other shapes is tried. Calls
/// goes_on() now and then, and gives up, with what it has found, when that is false.
std::vector<Explanation> find_causes(const Comparison& comparison);

}  // namespace core::check
