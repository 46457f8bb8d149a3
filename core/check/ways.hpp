#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/check/reading.hpp"
#include "core/graph/mistakes.hpp"

namespace core::check {

/// One way in which mistakes of one kind are made; the table of mistakes has the plainest, people find
/// others.
struct Way {
  std::vector<const mistakes::Mistake*> mistakes;  ///< what is done wrong, one or a few alike
  std::function<Model(const Model&)> made;
  Stage first;                 ///< no earlier stage can change
  std::string detail = {};     ///< "blocks of 4 keys": what the table of mistakes leaves open
  bool alone = false;          ///< it is one of many alike, and not tried in pairs
  bool cuts_products = false;  ///< products are those of trace_with_cut_products()
};

/// All ways that change this model and do not only round, in the order of the stages that they change; what
/// the tensors tell of a mask's large negative number is used.
std::vector<Way> ways_for(const Model& model, const std::vector<Theirs>& theirs);

/// The output projection left out, where that changes the shape of the output; else nothing.
std::optional<Way> output_left_out(const Model& model);

/// The ways in which numbers are made coarser, the finest first; whether tensors are rounded so is judged
/// otherwise.
std::vector<Way> rounding_ways(const Model& model);

/// The way in which heads are another number of them.
Way other_heads(const Model& model, std::size_t n_heads);

}  // namespace core::check
