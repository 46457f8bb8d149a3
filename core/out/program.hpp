#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/editing/draw.hpp"
#include "core/graph/model.hpp"

namespace core::formats {

/// A model as a Python program for PyTorch that builds it and prints every stage, to be read and to be run.
///
/// Numbers that PyTorch draws from one of the seeds, to the last bit, are drawn; all others stand in the
/// program. It is computed in float64, so its stages are those of attend() but for the order of sums. title
/// is its docstring. Names that a person chose are literals of printable ASCII in it, never in a comment.
/// Throws core::Error when the model cannot be computed or departs from the paper, or when something in it is
/// given or a head is ablated.
std::string program_text(const attention::Model& model, const std::string& title,
                         const std::vector<std::uint64_t>& seeds = editing::usual_seeds());

}  // namespace core::formats
